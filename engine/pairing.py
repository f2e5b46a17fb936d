"""Do two vocabularies fit, so that one model may draft for the other?

One invariant: two vocabularies fit only if each id means the same in both; rows of different widths do not matter.
"""

from dataclasses import dataclass

from engine.detokenize import sanitize
from engine.model import Vocabulary

_MOST_SHOWN = 40


@dataclass(frozen=True)
class Fit:
    """Whether a draft fits its target, and in one line why not."""

    fits: bool
    reason: str | None = None


def compare(target: Vocabulary, draft: Vocabulary) -> Fit:
    """The verdict on two vocabularies; its reason names their first difference."""
    if target.fingerprint == draft.fingerprint:
        return Fit(True)
    reason = _tokens(target, draft) or _sizes(target, draft) or _ends(target, draft) or _opening(target, draft)
    return Fit(reason is None, reason)


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
