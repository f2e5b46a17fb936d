"""What a proof tries: settings of its own, and conversations whose next words have been said before in them.

The lookup drafter has something to offer at the very first token of each answer, since the assistant has begun one
before.  Which of its conversations a setting is tried on is decided by the models at hand: a wrong rule shows where
drafts are refused as often as kept and where the target is not certain.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from engine.config import Message, Sampling
from engine.drafters.lookup import LookupDrafter
from engine.experiments.prove_records import LEVEL
from engine.model import FloatArray, Vocabulary
from engine.prompt import Chat

CONVERSATIONS = (
    ("Answer yes or no: is it warm in summer?", "Yes.", "Answer yes or no: will it be warm tomorrow?"),
    ("Heads or tails?", "Heads.", "Heads or tails?", "Tails.", "Heads or tails?"),
    ("Pick a number from one to five. Answer in one word.", "Three.", "Pick another one."),
    ("Begin a story with one sentence.", "The old man looked at the sea.", "Begin another story with one sentence."),
    ("Describe rain in one sentence.", "The rain falls softly on the roof.", "Describe snow in one sentence."),
    ("What is your favourite day?", "My favourite day is Sunday.", "And your favourite month?"),
    ("How do I boil an egg?", "To boil an egg, put it into hot water.", "How do I make tea?"),
    ("Why is the sky blue?", "The sky is blue because the air scatters blue light most.", "Why is the sea salty?"),
)
"""User and assistant in turns, the user last."""
REPEATING = (
    ("Say no five times.", "no no no no no", "Say no many times."),
    ("Repeat the word la.", "la la la la la la", "Repeat it again."),
    ("Laugh.", "ha ha ha ha ha ha", "Laugh again."),
)
"""The same, where answers use a token again at once: or penalties on what an answer has used would never show."""
TEXTS = (
    ("Tell me a short story about a lighthouse keeper who finds a letter.",),
    ("Write a Python function that returns the longest word of a text, then explain it.",),
    ("Copy this, word for word: the harbour wakes before the town does, and the boats come back low in the water.",),
)
"""What is compared as text: answers of some length."""
OPEN = Sampling(top_k=0, top_p=1.0, min_p=0.0)
"""Nothing filtered."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation as ids, and what lookup offers behind it."""

    text: str
    ids: tuple[int, ...]
    guess: int


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to sample, with drafts of `length` tokens; the first `judged` tokens of an answer are counted."""

    name: str
    sampling: Callable[[FloatArray, int], Sampling]
    """From the target's row behind the prompt, float32 [real tokens], and the token that lookup offers there."""
    length: int
    judged: int
    rounds: int
    conversations: Sequence[Sequence[str]] = CONVERSATIONS


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a proof does."""

    settings: Sequence[Setting]
    texts: Sequence[Sequence[str]] = TEXTS
    tokens: int = 48
    """Of each answer that is compared as text."""
    lengths: Sequence[int] = (1, 2, 5)
    """Fixed lengths of drafts there, beside auto."""

    @property
    def tests(self) -> int:
        """p-values at most: for each rule and drafter, one a judged token and one for the drafts kept."""
        return 4 * sum(setting.judged + 1 for setting in self.settings)

    @property
    def threshold(self) -> float:
        """The least p-value that passes: the level is shared evenly among the tests (Bonferroni)."""
        return LEVEL / max(1, self.tests)


def settings(rounds: int = 3000) -> tuple[Setting, ...]:
    """The settings of a proof.  Where nothing is filtered the tokens are too many for pairs of them to be counted."""
    hot = replace(OPEN, temperature=1.5, top_k=5)
    used = replace(OPEN, temperature=1.0, top_k=4, repeat_penalty=1.3, repeat_last=12, frequency_penalty=0.5)
    return (
        Setting("the defaults", lambda _row, _guess: Sampling(), 1, 2, rounds),
        Setting("T 1, no filters", lambda _row, _guess: replace(OPEN, temperature=1.0), 1, 1, rounds),
        Setting("T 1.5, top-k 5", lambda _row, _guess: hot, 2, 3, rounds),
        Setting("T 1, top-k 4, repeat 1.3 over 12, frequency 0.5", lambda _row, _guess: used, 2, 3, rounds, REPEATING),
        Setting("T 1, top-k 8, top-p 0.9, logit bias", _biased, 1, 2, rounds),
    )


def _biased(row: FloatArray, guess: int) -> Sampling:
    """The likeliest token but the guess is forbidden, the next one favoured, the third and the guess held back."""
    ranked = [int(token) for token in row.argsort()[::-1][:4] if token != guess][:3]
    bias = dict(zip(ranked, (-math.inf, 0.5, -0.5), strict=False)) | {guess: -0.25}
    return Sampling(temperature=1.0, top_k=8, top_p=0.9, min_p=0.0, logit_bias=bias)


def prompts(vocab: Vocabulary, conversations: Sequence[Sequence[str]]) -> list[Prompt]:
    """Conversations as this model reads them, those apart behind which lookup has nothing to offer."""
    chat, found = Chat(vocab), []
    for turns in conversations:
        ids = chat.ids(messages(turns))
        if (guess := first_guess(vocab, ids)) is not None:
            found.append(Prompt(turns[-1], tuple(ids), guess))
    return found


def messages(turns: Sequence[str]) -> tuple[Message, ...]:
    """User and assistant in turns, the user first."""
    return tuple(
        Message(role="assistant" if place % 2 else "user", content=content) for place, content in enumerate(turns)
    )


def first_guess(vocab: Vocabulary, ids: Sequence[int]) -> int | None:
    """The token that lookup drafts first behind `ids`; None: nothing."""
    lookup = LookupDrafter(vocab.eog)
    lookup.begin(ids, 0)
    lookup.offer(ids, 1)
    return next((proposal.token for proposal in lookup.propose(1)), None)
