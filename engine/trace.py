"""Where the tokens of an answer came from: the chances that the models gave them, and what each brought to the text.

One invariant: a chance is asked for once its token is decided, and of a row that is there already, so a trace changes
neither a token nor a distribution.  Chances are the softmax of a row's real logits as they are: no bias, no penalty,
temperature 1, no filter; so a target's and a draft's can be compared, and greedy answers have some, too.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from engine.detokenize import TextStream
from engine.events import Origin, Refused, TokenTrace
from engine.model import FloatArray, Vocabulary
from engine.narrow import Candidates, NarrowRows
from engine.verify import Proposal

Row = FloatArray | Candidates
Chances = Callable[[Row, Sequence[int]], list[float]]
"""The chance of each of some real ids in a row, which is still valid."""
PIECE = 16_384
"""Logits worked on at once, few enough for a core's own cache."""


class Refusal(NamedTuple):
    """A drafted token that was not kept."""

    token: int
    target: float
    draft: float | None


class Seen(NamedTuple):
    """The chances of a token that was emitted."""

    target: float
    draft: float | None = None
    """None where no model drew it."""
    refused: Refusal | None = None
    """The draft in whose place it stands."""


def chances(size: int, row: Row, tokens: Sequence[int]) -> list[float]:
    """The chance of each of the `tokens`, real ids, in a row of logits; ids from `size` on are padding."""
    if not isinstance(row, Candidates):
        return _of_whole(row[:size], tokens)
    if row.mass is None:
        return _of_whole(row.whole()[:size], tokens)
    mass = row.mass()
    places = np.searchsorted(row.ids, tokens)
    selected = (row.ids.take(places, mode="clip") == tokens).all()
    logits = row.logits[places] if selected else row.whole()[list(tokens)]
    return [math.exp(min(0.0, float(logit) - mass)) for logit in logits]


def _of_whole(row: FloatArray, tokens: Sequence[int]) -> list[float]:
    peak = row.max()
    mass = 0.0
    with np.errstate(over="ignore"):
        for start in range(0, row.size, PIECE):
            mass += float(np.exp(row[start : start + PIECE] - peak).sum())
    return [math.exp(float(row[token]) - float(peak)) / mass for token in tokens]


def seen(
    of: Chances, rows: FloatArray | NarrowRows, proposals: Sequence[Proposal], tokens: Sequence[int]
) -> list[Seen]:
    """What is to be told of a round's tokens, kept proposals and then the target's own.

    rows[i] is the target's row after i proposals.
    """
    last = len(tokens) - 1
    kept = [Seen(of(rows[at], [p.token])[0], p.chance) for at, p in enumerate(proposals[:last])]
    if last == len(proposals):
        return [*kept, Seen(of(rows[last], tokens[last:])[0])]
    refused = proposals[last]
    own, other = of(rows[last], [tokens[last], refused.token])
    return [*kept, Seen(own, None, Refusal(refused.token, other, refused.chance))]


class Trace:
    """Tells of the tokens of one answer, each once its text is settled; so nothing told is ever taken back."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._piece = vocab.piece
        self._names = {token: text for text, token in vocab.control.items()}
        self._seen: list[tuple[Origin, Seen]] = []
        self._told = 0
        self._text = ""
        """What was shown and is not told of."""

    def add(self, origins: Sequence[Origin], found: Sequence[Seen]) -> None:
        """The answer's next tokens."""
        self._seen += zip(origins, found, strict=True)

    def tell(self, text: str, stream: TextStream) -> list[TokenTrace]:
        """Of the tokens that are settled now; `text` is what the stream has returned since the last call."""
        self._text += text
        first, self._told = self._told, stream.settled
        out = []
        for number in range(first, self._told):
            size = stream.gained[number]
            out.append(self._token(*self._seen[number], self._text[:size]))
            self._text = self._text[size:]
        return out

    def _token(self, origin: Origin, found: Seen, text: str) -> TokenTrace:
        refused = None
        if (refusal := found.refused) is not None:
            refused = Refused(text=self._name(refusal.token), target=refusal.target, draft=refusal.draft)
        return TokenTrace(origin=origin, text=text, target=found.target, draft=found.draft, refused=refused)

    def _name(self, token: int) -> str:
        """The text of a token alone; the name of a control token, which has none."""
        return self._names.get(token) or self._piece(token).decode("utf-8", "replace")
