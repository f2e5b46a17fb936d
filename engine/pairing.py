"""Do two vocabularies fit, so that one model may draft for the other?

One invariant: two vocabularies fit as they are only if each id means the same in both; rows of different widths do not
matter.  Others fit by a map of the tokens that they share, unless those are so few that drafts would be refused mostly.
"""

from dataclasses import dataclass
from typing import Literal

from engine.detokenize import sanitize
from engine.model import Vocabulary
from engine.token_map import Overlap, TokenMap

LEAST = 0.5
"""Share of the target's tokens in a sample text that a draft must have: it bounds how many drafts can be kept."""
_MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether and how a draft fits its target."""

    difference: str | None = None
    """The first difference of the two vocabularies; None where each id means the same."""
    overlap: Overlap | None = None
    """What they share, where they differ."""
    map: TokenMap | None = None
    """How the draft's tokens become the target's, where it fits by that."""

    @property
    def kind(self) -> Literal["equal", "map", "none"]:
        """As it is, by a map, or not at all."""
        return "equal" if self.difference is None else "map" if self.map else "none"

    @property
    def reason(self) -> str:
        """Why so, in one line."""
        if self.difference is None:
            return "each token means the same in both"
        shared = f"{self.overlap}" if self.map else f"only {self.overlap}, which is too few"
        return f"{shared}; the first difference: {self.difference}"


def compare(target: Vocabulary, draft: Vocabulary) -> Fit:
    """The verdict on two vocabularies."""
    if target.fingerprint == draft.fingerprint:
        return Fit()
    difference = _tokens(target, draft) or _sizes(target, draft) or _ends(target, draft) or _opening(target, draft)
    if difference is None:
        return Fit()
    token_map = TokenMap(target, draft)
    return Fit(difference, token_map.overlap, token_map if token_map.overlap.text >= LEAST else None)


def _tokens(target: Vocabulary, draft: Vocabulary) -> str | None:
    target_names, draft_names = _control_names(target), _control_names(draft)
    for token in range(min(target.size, draft.size)):
        same = target.piece(token) == draft.piece(token)
        if not same or target_names.get(token) != draft_names.get(token):
            mine, other = _show(target, token, target_names), _show(draft, token, draft_names)
            return f"token {token} is {mine} in the target and {other} in the draft"
    return None


def _sizes(target: Vocabulary, draft: Vocabulary) -> str | None:
    if target.size == draft.size:
        return None
    return f"the target has {target.size:,} tokens, the draft {draft.size:,}"


def _ends(target: Vocabulary, draft: Vocabulary) -> str | None:
    odd = target.eog ^ draft.eog
    if not odd:
        return None
    token = min(odd)
    one, other = ("target", "draft") if token in target.eog else ("draft", "target")
    name = _show(target, token, _control_names(target))
    return f"token {token} ({name}) ends an answer in the {one}, not in the {other}"


def _opening(target: Vocabulary, draft: Vocabulary) -> str | None:
    if target.bos == draft.bos:
        return None
    return f"a prompt opens with {_opener(target)} in the target and with {_opener(draft)} in the draft"


def _opener(vocab: Vocabulary) -> str:
    return "no token" if vocab.bos is None else f"token {vocab.bos} ({_show(vocab, vocab.bos, _control_names(vocab))})"


def _control_names(vocab: Vocabulary) -> dict[int, str]:
    return {token: text for text, token in vocab.control.items()}


def _show(vocab: Vocabulary, token: int, names: dict[int, str]) -> str:
    """A token as a line of text can show it: control characters visible, invalid bytes in hexadecimal."""
    if token in names:
        return f"the control token {_quote(names[token])}"
    data = vocab.piece(token)
    try:
        return _quote(data.decode())
    except UnicodeDecodeError:
        return "the bytes " + data[:_MOST_SHOWN].hex(" ")


def _quote(text: str) -> str:
    short = text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
    return "'" + sanitize(short).replace("\n", "␊").replace("\t", "␉") + "'"
