"""One suite for every model that can be left early: what is ahead of the cache changes nothing in it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backends.toy import EarlyLM
from engine.early import LeavesEarly, leaves_early
from engine.engines import missing_package
from engine.errors import CannotRewind, DecodeFailed, Interrupted
from engine.model import Model
from tests.engine.backends.contract import feed, some_ids
from tests.engine.backends.early_contract import EarlyCase, early_row, whole_rows

CONTEXT = 200


@contextmanager
def _toy_waits(model: Model) -> Iterator[None]:
    assert isinstance(model, EarlyLM)

    def stop(_tokens: Sequence[int]) -> None:
        model.interrupt()

    model.on_pass = stop
    yield
    model.on_pass = None


def _torch() -> list[EarlyCase]:
    """None without the extra."""
    if missing_package():
        return []
    from tests.engine.backends.torch_cases import EARLY_CASES

    return EARLY_CASES


CASES = [EarlyCase("toy", lambda _folder: EarlyLM(n_ctx=CONTEXT), _toy_waits), *_torch()]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> EarlyCase:
    return request.param


@pytest.fixture(scope="module")
def models(case: EarlyCase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LeavesEarly, LeavesEarly]]:
    folder = tmp_path_factory.mktemp(case.name)
    both = case.make(folder), case.make(folder)
    yield both
    for model in both:
        model.close()


@pytest.fixture
def model(models: tuple[LeavesEarly, LeavesEarly]) -> LeavesEarly:
    models[0].rewind(0)
    return models[0]


@pytest.fixture
def other(models: tuple[LeavesEarly, LeavesEarly]) -> LeavesEarly:
    """The same model once more."""
    models[1].rewind(0)
    return models[1]


STEP = st.tuples(
    st.sampled_from(["leave", "leave", "verify", "forward", "rewind", "stay"]),
    st.lists(st.integers(0, 31), min_size=1, max_size=4),
    st.integers(0, 4),
)


class Playing:
    """A model, and what its cache and its first layers are to hold."""

    def __init__(self, model: LeavesEarly) -> None:
        self.model = model
        self.held: list[int] = []
        self.ahead: list[int] = []
        self.after = 1

    def leave(self, tokens: list[int], layers: int) -> np.ndarray:
        if layers != self.after:
            self.ahead, self.after = [], layers
        self.ahead += tokens
        return self.model.leave(tokens, 1, layers)[0].copy()

    def forward(self, tokens: list[int]) -> np.ndarray:
        self.held += tokens
        self.ahead = []
        return self.model.forward(tokens, len(tokens)).copy()

    def rewind(self, length: int) -> None:
        self.model.rewind(length)
        del self.held[length:]
        self.ahead = []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=12))
def test_rows_are_functions_of_the_cached_ids_and_of_those_ahead(
    case: EarlyCase, models: tuple[LeavesEarly, LeavesEarly], steps: list[tuple[str, list[int], int]]
) -> None:
    """Tokens leave, what left is verified in part or with more, the cache goes back or stays: rows are as if new."""
    model, other = models
    model.rewind(0)
    playing = Playing(model)
    for name, tokens, number in steps:
        before = list(playing.held)
        layers = (1, model.layers - 1)[number % 2]
        if name == "leave":
            row = playing.leave(tokens, layers)
            case.expect(row, early_row(other, [*playing.held, *playing.ahead], layers))
        elif name == "rewind":
            playing.rewind(max(0, len(before) - number))
        elif name == "stay":
            playing.rewind(len(before))
        else:
            taken = [*playing.ahead[:number], *tokens] if name == "verify" else tokens
            case.expect(playing.forward(taken), whole_rows(other, before, taken))
        assert model.length == len(playing.held)


def test_rows_are_as_those_of_forward(case: EarlyCase, model: LeavesEarly) -> None:
    assert leaves_early(model)
    ids = some_ids(model, 7)
    whole = model.forward(ids, 7).copy()
    model.rewind(0)
    every = model.leave(ids, 7, 1).copy()
    assert every.dtype == np.float32
    assert every.shape == whole.shape
    assert np.isfinite(every[:, : model.vocab.size]).all()
    assert np.abs(every - whole)[:, : model.vocab.size].max() > case.tolerance
    for rows in (0, 1, 3):
        model.rewind(0)
        got = model.leave(ids, rows, 1)
        assert got.shape == (rows, whole.shape[1])
        case.expect(got, every[7 - rows :])
    assert model.length == 0


def test_every_number_of_layers_has_rows_of_its_own(case: EarlyCase, model: LeavesEarly) -> None:
    ids = some_ids(model, 9)
    rows = [early_row(model, ids, layers) for layers in range(1, model.layers)]
    for row, after in pairwise(rows):
        assert np.abs(row - after)[: model.vocab.size].max() > case.tolerance


def _another(model: LeavesEarly, ids: list[int], folder: Path) -> None:
    model.forward([ids[0]], 0)
    ids.append(ids[0])


def _back(model: LeavesEarly, ids: list[int], folder: Path) -> None:
    model.rewind(len(ids) - 1)
    ids.pop()


def _nowhere(model: LeavesEarly, ids: list[int], folder: Path) -> None:
    model.rewind(len(ids))


def _hole(model: LeavesEarly, ids: list[int], folder: Path) -> None:
    try:
        model.drop(1, 3)
        del ids[1:3]
    except CannotRewind:
        model.rewind(len(ids))


def _load(model: LeavesEarly, ids: list[int], folder: Path) -> None:
    model.save(folder / "cache")
    model.load(folder / "cache")


def _elsewhere(model: LeavesEarly, ids: list[int], folder: Path) -> None:
    model.leave([ids[0]], 1, 1)
    model.rewind(len(ids))


@pytest.mark.parametrize("change", [_another, _back, _nowhere, _hole, _load, _elsewhere])
def test_what_is_ahead_is_forgotten_by_whatever_changes_the_cache(
    case: EarlyCase,
    model: LeavesEarly,
    other: LeavesEarly,
    tmp_path: Path,
    change: Callable[[LeavesEarly, list[int], Path], None],
) -> None:
    ids = some_ids(model, 12)
    layers = model.layers - 1
    feed(model, ids, 5)
    model.leave([3, 4], 1, layers)
    change(model, ids, tmp_path)
    assert model.length == len(ids)
    if change is not _hole or not case.tolerance:  # what moved up is near to a fresh reading
        case.expect(model.leave([5], 1, layers)[0], early_row(other, [*ids, 5], layers))
        case.expect(model.forward([5, 6], 2), whole_rows(other, ids, [5, 6]))


def test_a_saved_cache_holds_nothing_that_is_ahead(
    case: EarlyCase, model: LeavesEarly, other: LeavesEarly, tmp_path: Path
) -> None:
    ids = some_ids(model, 12)
    feed(model, ids, 5)
    model.leave([3, 4], 1, 1)
    model.save(tmp_path / "cache")
    other.load(tmp_path / "cache")
    assert other.length == 12
    got = other.forward([5], 1).copy()
    case.expect(got, whole_rows(model, ids, [5]))


def test_a_run_that_cannot_be_is_refused_and_changes_nothing(
    case: EarlyCase, model: LeavesEarly, other: LeavesEarly
) -> None:
    ids = some_ids(model, 5)
    model.forward(ids, 0)
    refused: list[tuple[list[int], int, int]] = [([], 0, 1), ([1], 2, 1), ([1], -1, 1), ([-1], 1, 1)]
    refused += [([model.vocab.size], 1, 1), ([1] * (model.n_batch + 1), 1, 1)]
    for tokens, rows, layers in refused:
        with pytest.raises(ValueError):
            model.leave(tokens, rows, layers)
    assert model.length == 5
    case.expect(model.forward([3], 1), whole_rows(other, ids, [3]))


def test_what_is_ahead_has_to_fit_the_context_as_well(case: EarlyCase, model: LeavesEarly, other: LeavesEarly) -> None:
    ids = some_ids(model, model.n_ctx)
    feed(model, ids[:-3], 40)
    model.leave(ids[-3:-1], 1, 1)
    with pytest.raises(DecodeFailed, match=r"full.*--ctx"):
        model.leave([1, 2], 1, 1)
    assert model.length == model.n_ctx - 3
    case.expect(model.forward(ids[-3:], 3), whole_rows(other, ids[:-3], ids[-3:]))


def test_an_interrupted_run_leaves_the_old_cache(case: EarlyCase, model: LeavesEarly, other: LeavesEarly) -> None:
    ids = some_ids(model, 12)
    layers = model.layers - 1
    feed(model, ids, 5)
    model.leave([3], 1, layers)
    with case.waiting(model), pytest.raises(Interrupted):
        model.leave([4], 1, layers)
    assert model.length == 12
    case.expect(model.forward([3, 4], 2), whole_rows(other, ids, [3, 4]))
    case.expect(model.leave([5], 1, layers)[0], early_row(other, [*ids, 3, 4, 5], layers))
