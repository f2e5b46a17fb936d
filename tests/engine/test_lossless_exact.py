"""The real loop over all chance: whole answers have the target's own distribution, to the last bits of float64."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import pytest

from engine.config import Sampling, Speculation
from engine.context import Context
from engine.errors import DecodeFailed
from engine.experience import Experience
from engine.model import FloatArray
from engine.planner import Planner
from engine.sampling import Distribution
from engine.stats import Source
from tests.engine.loops import ByIds, Chancy, Loop, Parts, Remembering, coupled
from tests.engine.mutants import LOOPS
from tests.engine.rounds import Path, error
from tests.engine.rows import PLAIN, plain

EXACT = 1e-12
MODEL: tuple[Source, ...] = ("model",)
LOOKUP: tuple[Source, ...] = ("lookup",)
EXIT: tuple[Source, ...] = ("exit",)
BOTH: tuple[Source, ...] = ("lookup", "model")
ALL: tuple[Source, ...] = ("lookup", "model", "exit")


SETTINGS = {
    "plain": PLAIN,
    "default": Sampling(),
    "greedy": Sampling(temperature=0),
    "cold": plain(temperature=0.4),
    "hot": plain(temperature=1.8),
    "top-k": plain(top_k=2),
    "top-p": plain(top_p=0.8),
    "min-p": plain(min_p=0.25),
    "repeat": plain(repeat_penalty=1.6, repeat_last=4),
    "repeat below 1": plain(repeat_penalty=0.7),
    "frequency": plain(frequency_penalty=1.2),
    "presence": plain(presence_penalty=-0.9),
    "bias": plain(logit_bias={0: 1.5, 1: -1.0}),
    "forbidden": plain(logit_bias={2: -math.inf}),
    "penalties": plain(repeat_penalty=1.3, repeat_last=3, frequency_penalty=0.8, presence_penalty=0.5),
    "all": Sampling(
        temperature=1.3, top_k=3, top_p=0.93, min_p=0.05, repeat_penalty=1.2, repeat_last=5, frequency_penalty=0.6,
        presence_penalty=-0.4, logit_bias={1: 0.7},
    ),
}  # fmt: skip


def assert_lossless(loop: Loop, whole: bool = False) -> None:
    found = loop.over_whole_runs() if whole else loop.round_by_round()
    assert sum(found.values()) == pytest.approx(1, abs=EXACT)
    assert error(found, loop.law()) < EXACT


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("drafted", [1, 2])
def test_short_model_drafts_at_every_setting(drafted: int, name: str) -> None:
    eog = (1,) if drafted % 2 else ()
    assert_lossless(Loop(SETTINGS[name], drafted, MODEL, eog=eog, remembers=drafted > 1), whole=True)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_targets_own_first_layers_at_every_setting(name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], 1, EXIT, eog=(1,), remembers=False), whole=True)
    assert_lossless(Loop(SETTINGS[name], 2, EXIT, room=3), whole=True)
    assert_lossless(Loop(SETTINGS[name], 4, EXIT, size=2))


@pytest.mark.parametrize("name", ["repeat", "penalties", "all"])
def test_what_a_sampler_carries_from_row_to_row(name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], 2, MODEL, remembers=False), whole=True)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("size", "drafted"), [(3, 3), (2, 4)])
def test_long_model_drafts_at_every_setting(size: int, drafted: int, name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], drafted, MODEL, size))


@pytest.mark.parametrize("name", ["plain", "top-k", "top-p", "min-p", "all"])
def test_long_model_drafts_over_three_tokens(name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], 4, MODEL))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("drafted", [1, 2, 3, 4])
def test_lookup_drafts_at_every_setting(drafted: int, name: str) -> None:
    eog = (1,) if drafted % 2 else ()
    assert_lossless(Loop(SETTINGS[name], drafted, LOOKUP, eog=eog, remembers=drafted > 3), whole=True)


@pytest.mark.parametrize("name", ["plain", "top-p", "repeat", "all"])
@pytest.mark.parametrize("drafted", [1, 2, 3, 4])
@pytest.mark.parametrize("sources", [MODEL, LOOKUP, EXIT])
@pytest.mark.parametrize("eog", [(2,), (0, 1)])
def test_an_end_of_generation_token_inside(
    eog: tuple[int, ...], sources: tuple[Source, ...], drafted: int, name: str
) -> None:
    assert_lossless(Loop(SETTINGS[name], drafted, sources, eog=eog, seed=1))


@pytest.mark.parametrize(("size", "drafted"), [(4, 1), (5, 1), (6, 1), (4, 2), (5, 2), (2, 4)])
@pytest.mark.parametrize("name", ["plain", "penalties", "all"])
@pytest.mark.parametrize("sources", [MODEL, LOOKUP])
def test_other_sizes(sources: tuple[Source, ...], name: str, size: int, drafted: int) -> None:
    assert_lossless(Loop(SETTINGS[name], drafted, sources, size=size, eog=(size - 1,), seed=2))


@pytest.mark.parametrize("padding", [(0, 3), (3, 0), (2, 5)])
@pytest.mark.parametrize("name", ["plain", "greedy", "all"])
@pytest.mark.parametrize("rule", [Parts(), Parts(rule=coupled)])
def test_rows_padded_to_different_sizes(rule: Parts, name: str, padding: tuple[int, int]) -> None:
    assert_lossless(Loop(SETTINGS[name], 2, padding=padding, room=3, seed=3, parts=rule), whole=True)


# When drafting stops


@pytest.mark.parametrize("planner", [Chancy, ByIds])
@pytest.mark.parametrize("name", ["plain", "penalties", "all"])
@pytest.mark.parametrize("sources", [MODEL, LOOKUP, EXIT, BOTH])
def test_lengths_by_chance_or_by_what_was_said(
    sources: tuple[Source, ...], name: str, planner: Callable[[Path, Context, int], Planner]
) -> None:
    parts = Parts(planner=planner)
    assert_lossless(Loop(SETTINGS[name], 3, sources, eog=(2,), seed=4, parts=parts))
    assert_lossless(Loop(SETTINGS[name], 2, sources, seed=5, room=3, parts=parts), whole=True)


@pytest.mark.parametrize("name", ["plain", "all"])
def test_three_sources_in_any_turn(name: str) -> None:
    parts = Parts(planner=Chancy)
    assert_lossless(Loop(SETTINGS[name], 2, ALL, size=2, seed=4, parts=parts))
    assert_lossless(Loop(SETTINGS[name], 1, ALL, size=2, seed=5, room=3, parts=parts), whole=True)


def confident(rows: Sequence[Distribution]) -> bool:
    """The next token's own row has a favourite."""
    return float(rows[-1].probs.max()) > 0.6


def likely(rows: Sequence[Distribution]) -> bool:
    """The favourites so far are likely to be right together."""
    return math.prod(float(row.probs.max()) for row in rows) > 0.35


def certain(rows: Sequence[Distribution]) -> bool:
    """The rows so far have little entropy."""
    return sum(map(_entropy, rows)) < 1.2


def _entropy(row: Distribution) -> float:
    return -sum(p * math.log(p) for p in row.probs.tolist() if p > 0)


@pytest.mark.parametrize("submits", [confident, likely, certain])
@pytest.mark.parametrize(("name", "drafted"), [("plain", 4), ("all", 4), ("penalties", 3), ("hot", 2), ("cold", 1)])
def test_drafting_that_stops_by_its_own_confidence(
    name: str, drafted: int, submits: Callable[[Sequence[Distribution]], bool]
) -> None:
    loop = Loop(SETTINGS[name], drafted, eog=(0,), seed=6, submits=submits)
    assert_lossless(loop)
    assert {asked for asked, _ in loop.tests} >= {0, 1}
    for sources in (MODEL, EXIT):
        assert_lossless(Loop(SETTINGS[name], 2, sources, seed=6, submits=submits), whole=True)


class Failing(Remembering):
    """Fails to take in one of the tokens, as a draft with a damaged row would, when it drafts."""

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        if rows and tokens[-1] == 2 and self.blur:
            raise DecodeFailed("a damaged row")
        return super().forward(tokens, rows)

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        if tokens[-1] == 2:
            raise DecodeFailed("a damaged row")
        return super().leave(tokens, rows, layers)


class FailingLoop(Loop):
    @cached_property
    def draft(self) -> Remembering:
        return Failing(self.size, self.seed, self.blur)

    @cached_property
    def target(self) -> Remembering:
        return Failing(self.size, self.seed)


@pytest.mark.parametrize("sources", [MODEL, EXIT])
@pytest.mark.parametrize("drafted", [1, 2, 3])
def test_a_draft_that_fails_at_what_it_drew(drafted: int, sources: tuple[Source, ...]) -> None:
    assert_lossless(FailingLoop(PLAIN, drafted, sources, room=3, remembers=False), whole=True)


def learning(path: Path, context: Context, most: int) -> Planner:
    """The planner that a user gets."""
    return Planner(Speculation(), Experience(), greedy=False)


@pytest.mark.parametrize("name", ["plain", "top-k", "all"])
@pytest.mark.parametrize("sources", [MODEL, LOOKUP, EXIT, BOTH])
def test_the_planner_that_learns_from_what_was_kept(sources: tuple[Source, ...], name: str) -> None:
    loop = Loop(SETTINGS[name], 3, sources, size=2, seed=7, room=4, parts=Parts(planner=learning))
    assert_lossless(loop, whole=True)
    assert any(drafted for drafted, _ in loop.tests)


# The coupled rule


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("size", "drafted"), [(3, 1), (3, 2), (2, 3)])
def test_coupled_over_all_noise(size: int, drafted: int, name: str) -> None:
    eog = (1,) if drafted % 2 else ()
    assert_lossless(Loop(SETTINGS[name], drafted, MODEL, size, eog, parts=Parts(rule=coupled)), whole=True)


@pytest.mark.parametrize("name", SETTINGS)
def test_coupled_over_all_noise_with_the_targets_own_first_layers(name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], 1, EXIT, eog=(1,), parts=Parts(rule=coupled)), whole=True)
    assert_lossless(Loop(SETTINGS[name], 2, EXIT, room=3, parts=Parts(rule=coupled)), whole=True)


@pytest.mark.parametrize("name", ["plain", "top-p", "penalties", "all"])
def test_coupled_over_all_noise_with_long_drafts(name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], 4, MODEL, size=2, parts=Parts(rule=coupled)), whole=True)


@pytest.mark.parametrize(("name", "drafted"), [*((name, 3) for name in SETTINGS), ("all", 1), ("all", 2), ("all", 4)])
def test_coupled_over_all_noise_with_lookup_drafts(name: str, drafted: int) -> None:
    assert_lossless(Loop(SETTINGS[name], drafted, LOOKUP, eog=(1,), parts=Parts(rule=coupled)), whole=True)


@pytest.mark.parametrize("planner", [Chancy, ByIds])
@pytest.mark.parametrize("name", ["plain", "penalties"])
def test_coupled_with_lengths_by_chance_or_by_what_was_said(
    name: str, planner: Callable[[Path, Context, int], Planner]
) -> None:
    parts = Parts(rule=coupled, planner=planner)
    assert_lossless(Loop(SETTINGS[name], 2, BOTH, seed=8, room=3, parts=parts), whole=True)


@pytest.mark.parametrize("name", ["plain", "penalties"])
def test_coupled_with_drafting_that_stops_by_its_own_confidence(name: str) -> None:
    assert_lossless(Loop(SETTINGS[name], 2, seed=6, submits=confident, parts=Parts(rule=coupled)), whole=True)


# What must not pass


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_with_one_wrong_part_shows(name: str) -> None:
    found = LOOPS[name].over_whole_runs()
    assert sum(found.values()) == pytest.approx(1, abs=EXACT)
    assert error(found, LOOPS[name].law()) > 1e-6


@pytest.mark.parametrize("drafted", [1, 2, 3, 4])
@pytest.mark.parametrize("sources", [MODEL, LOOKUP, EXIT])
def test_every_number_of_kept_drafts_was_played(sources: tuple[Source, ...], drafted: int) -> None:
    loop = Loop(PLAIN, drafted, sources, room=drafted + 1)
    loop.round_by_round()
    assert {kept for asked, kept in loop.tests if asked == drafted} == set(range(drafted + 1))
