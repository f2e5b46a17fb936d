"""A sampler counts an answer as it grows: each row is what a fresh count of its own history gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.config import Sampling
from engine.sampler import Sampler
from engine.sampling import distribution

SIZE = 12
TOKENS = st.integers(0, SIZE - 1)
ROUNDS = st.lists(st.tuples(st.lists(TOKENS, max_size=5), st.integers(0, 5), TOKENS), max_size=8)


@given(
    prompt=st.lists(TOKENS, min_size=1, max_size=10),
    rounds=ROUNDS,
    seed=st.integers(0, 99),
    repeat=st.sampled_from([1.0, 1.3, 0.5]),
    back=st.sampled_from([0, 1, 3, 8, 64]),
    frequency=st.sampled_from([0.0, 0.7, -0.4]),
    presence=st.sampled_from([0.0, 1.1]),
)
def test_rows_see_the_history_that_their_position_would_have(
    prompt: list[int],
    rounds: list[tuple[list[int], int, int]],
    seed: int,
    repeat: float,
    back: int,
    frequency: float,
    presence: float,
) -> None:
    sampling = Sampling(
        temperature=0.9,
        repeat_penalty=repeat,
        repeat_last=back,
        frequency_penalty=frequency,
        presence_penalty=presence,
    )
    sampler = Sampler(sampling, SIZE, frozenset(), len(prompt))
    rng = np.random.default_rng(seed)
    ids = list(prompt)
    for drafts, kept, own in rounds:
        for looked_at in range(len(drafts) + 1):
            row = rng.normal(size=SIZE).astype(np.float32) * 3
            ahead = drafts[:looked_at]
            history = [*ids, *ahead]
            want = distribution(row, SIZE, sampling, history, history[len(prompt) :])
            found = sampler(row, ids, ahead)
            assert np.array_equal(found.probs, want.probs)
            assert np.array_equal(found.ids, want.ids)  # type: ignore[arg-type]
        ids += [*drafts[:kept], own]
