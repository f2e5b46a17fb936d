"""How good and how fast a draft is: against answers that the target wrote once, and by the clock.

The one invariant: every draft is asked at the very same places, the target's answers forced on it, so two forms differ
in what they would propose there and in nothing else.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine.calibration_text import sample_ids
from engine.config import Message, Sampling
from engine.errors import CannotRewind
from engine.experiments.goodness import kept_share
from engine.experiments.tune_records import Acceptance
from engine.model import FloatArray, Model
from engine.prompt import Chat
from engine.sampler import Sampler
from engine.sampling import Distribution

SAMPLING = Sampling(temperature=0.8)
ROWS = 32
"""Rows of logits that are asked for at once: one is as wide as the vocabulary."""
CONTEXT = 256
"""Tokens in the cache where passes are timed."""
WIDTHS, PASSES = (1, 2), 15
"""Tokens in a pass of a draft, and how often one is timed."""
TARGET_WIDTHS, TARGET_PASSES = (1, 2, 3, 4, 6, 8, 12, 16), 6
"""The same for the target."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One greedy answer of the target's, and its own distributions along it."""

    prompt: Sequence[int]
    answer: Sequence[int]
    sampled: Sequence[Distribution]
    """What each token of the answer would have been drawn from at a temperature of 0.8."""


def record(target: Model, prompt: str, tokens: int) -> Recorded:
    """The target's greedy answer, at most `tokens` long; its cache is empty afterwards."""
    ids = Chat(target.vocab).ids([Message(role="user", content=prompt)])
    sampler, answer, sampled = _sampler(target), list[int](), list[Distribution]()
    target.rewind(0)
    row = _read(target, ids)
    while len(answer) < tokens:
        token = int(row[: target.vocab.size].argmax())
        if token in target.vocab.eog:
            break
        answer.append(token)
        sampled.append(sampler(row, (), ()))
        row = target.forward([token], 1)[0]
    target.rewind(0)
    return Recorded(ids, answer, sampled)


def acceptance(draft: Model, answers: Sequence[Recorded]) -> Acceptance:
    """How often its tokens would be kept; its cache is empty afterwards."""
    sampler, greedy, kept, places = _sampler(draft), 0, 0.0, 0
    for known in answers:
        draft.rewind(0)
        for row, token, target in zip(_rows(draft, known), known.answer, known.sampled, strict=True):
            greedy += int(row[: draft.vocab.size].argmax()) == token
            kept += kept_share("rejection", target, sampler(row, (), ()))
            places += 1
    draft.rewind(0)
    return Acceptance(greedy=greedy / max(1, places), sampled=kept / max(1, places))


def passes(draft: Model) -> dict[int, float]:
    """Milliseconds of a draft's passes by width; its cache is empty afterwards."""
    return _passes(draft, WIDTHS, PASSES)


def target_passes(target: Model) -> dict[int, float]:
    """The same of the target's."""
    return _passes(target, TARGET_WIDTHS, TARGET_PASSES)


def least(*times: Mapping[int, float]) -> dict[int, float]:
    """The least time at each width: whatever else ran meanwhile only added to it."""
    return {width: min(one[width] for one in times) for width in times[0]}


def _passes(model: Model, widths: Sequence[int], count: int) -> dict[int, float]:
    ids = sample_ids(model.vocab, CONTEXT + max(widths))
    model.rewind(0)
    _read(model, ids[:CONTEXT])
    found = {width: min(_timed(model, ids[CONTEXT : CONTEXT + width], count)) for width in widths}
    model.rewind(0)
    return found


def _timed(model: Model, ids: Sequence[int], count: int) -> Iterator[float]:
    length = model.length
    for _ in range(count):
        start = time.perf_counter()
        model.forward(ids, len(ids))
        yield 1e3 * (time.perf_counter() - start)
        with suppress(CannotRewind):  # then each pass stands one token further on
            model.rewind(length)


def _rows(model: Model, known: Recorded) -> Iterator[FloatArray]:
    """The row before each token of an answer; valid until the next one."""
    if not known.answer:
        return
    yield _read(model, known.prompt)
    ahead = known.answer[:-1]
    step = min(ROWS, model.n_batch)
    for start in range(0, len(ahead), step):
        part = ahead[start : start + step]
        yield from model.forward(part, len(part))


def _read(model: Model, ids: Sequence[int]) -> FloatArray:
    """Read a prompt; the row behind it."""
    for start in range(0, len(ids), model.n_batch):
        rows = model.forward(ids[start : start + model.n_batch], 1)
    row: FloatArray = rows[0]
    return row


def _sampler(model: Model) -> Sampler:
    return Sampler(SAMPLING, model.vocab.size, model.vocab.eog, 0)
