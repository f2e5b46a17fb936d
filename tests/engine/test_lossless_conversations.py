"""Conversations as users have them: with drafts of any length, each turn is what a fresh engine says without any."""

import random
from collections import Counter

import pytest

from engine.backends.toy import ToyModel
from engine.stats import SourceCount
from tests.engine.conversations import CUT_WITHIN, Conversation, Talk, Turn

TALKS = 2000
PARTS = 20
EVERYWHERE = 20
"""Conversations that are broken off at each of their yields."""


def check(conversation: Conversation, turn: Turn) -> None:
    """The turn is the target's own, and the caches hold a prefix of the ids."""
    fresh = conversation.talk.fresh(turn.prompt, turn.max_tokens)
    said = turn.held[len(turn.prompt) :]
    assert turn.held[: len(turn.prompt)] == turn.prompt
    if turn.broken:
        # what a stop string would take back is still there where the turn was broken off before that
        assert said[: len(fresh.ids)] == fresh.ids[: len(said)]
        assert turn.text[: len(fresh.text)] == fresh.text[: len(turn.text)]
        assert turn.answer is None or turn.answer.finish_reason in ("cancelled", fresh.finish_reason)
    else:
        assert turn.answer is not None
        assert (turn.answer.ids, turn.answer.text) == (fresh.ids, fresh.text)
        assert (turn.answer.finish_reason, turn.answer.stop_kind) == (fresh.finish_reason, fresh.stop_kind)
        assert (said, turn.text) == (fresh.ids, fresh.text)
    for cache in conversation.engine.context.caches:
        assert isinstance(cache.model, ToyModel)
        assert cache.length == cache.model.length
        assert cache.model._cells == turn.held[: cache.length]


def play(talk: Talk, cut: int | None) -> tuple[Conversation, Counter[str]]:
    """The conversation, and what happened in it."""
    conversation, seen = Conversation(talk, cut), Counter[str]()
    for turn in conversation.turns():
        check(conversation, turn)
        seen["turns"] += 1
        seen["broken off"] += turn.broken
        seen["last looked up in the library"] += conversation.engine._lookup._copied is not None
        if turn.answer is not None:
            seen[turn.answer.stop_kind or turn.answer.finish_reason] += 1
            seen["drafted"] += turn.answer.speculation.drafted
            seen["accepted"] += turn.answer.speculation.accepted
            early = turn.answer.speculation.by_source.get("exit", SourceCount())
            seen["left early"] += early.drafted
            seen["kept of it"] += early.accepted
    return conversation, seen


@pytest.mark.parametrize("part", range(PARTS))
def test_conversations_that_are_broken_off_somewhere(part: int) -> None:
    seen: Counter[str] = Counter()
    talks = range(part * TALKS // PARTS, (part + 1) * TALKS // PARTS)
    for seed in talks:
        seen += play(Talk.of(seed), random.Random(seed).randrange(CUT_WITHIN))[1]
    assert seen["broken off"] == len(talks)
    assert seen["turns"] >= 3 * len(talks)
    assert all(seen[kind] for kind in ("eos", "string", "length", "cancelled", "context_full"))
    assert 0 < seen["accepted"] < seen["drafted"]
    assert seen["last looked up in the library"]
    assert 0 < seen["kept of it"] < seen["left early"]


@pytest.mark.parametrize("seed", range(TALKS, TALKS + EVERYWHERE))
def test_conversations_that_are_broken_off_anywhere(seed: int) -> None:
    talk = Talk.of(seed)
    whole, _ = play(talk, None)
    for cut in range(whole.yields):
        conversation, seen = play(talk, cut)
        assert conversation.broken
        assert seen["broken off"] == 1
