"""Captured passes where the capture fails, at load and in a conversation: the network is run as it is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

from engine.backends.torch_captured import LEAST_ROOM, Run, repeated
from tests.engine.backends.contract import some_ids
from tests.engine.backends.torch_cases import NOISE, making
from tests.tiny_torch import write_llama


def failing(run: Run) -> tuple[Callable[[], None], object]:
    run()
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize("failed", [False, True])
def test_a_conversation_goes_on_where_the_next_capture_fails(tmp_path: Path, failed: bool) -> None:
    plain, model = (making(write_llama, captured=captured)(tmp_path) for captured in (False, True))
    ids = some_ids(model, LEAST_ROOM + 8)
    for start in range(0, LEAST_ROOM - 16, 16):
        model.forward(ids[start : start + 16], 1)
    assert model._captured is not None
    model._captured._capture = failing if failed else repeated
    plain.forward(ids[:128], 0)
    plain.forward(ids[128 : model.length], 0)
    while model.length < len(ids):  # into the next room
        tokens = ids[model.length : model.length + 8]
        np.testing.assert_allclose(model.forward(tokens, 8), plain.forward(tokens, 8), rtol=0, atol=NOISE)
    assert model.captured is not failed


@pytest.mark.parametrize("weights", ["bf16", "fp16"])
def test_what_may_overflow_is_not_captured(tmp_path: Path, weights: str) -> None:
    """A refused draft that is no number would stay in the room, where all is looked at."""
    model = making(write_llama, captured=True, weights=weights)(tmp_path)
    assert model.captured is (weights == "bf16")
    model.close()
