"""The benchmark's prompts as a model's chat template makes them, for other programs to read."""

from collections.abc import Iterable

from engine.config import Message
from engine.experiments.bench_prompts import KINDS
from engine.model import Vocabulary
from engine.prompt import Chat


def rendered(vocab: Vocabulary, kinds: Iterable[str]) -> dict[str, bytes]:
    """By name, such as coding-1: the text of the very ids that a run is given.

    An opening begin-of-text token is left out, since programs that read a prompt add it by themselves.
    """
    chat = Chat(vocab)
    names = {token: name.encode() for name, token in vocab.control.items()}
    found = {}
    for kind in kinds:
        for number, prompt in enumerate(KINDS[kind].prompts, start=1):
            ids = chat.ids((Message(role="user", content=prompt),))
            start = 1 if ids[0] == vocab.bos else 0
            found[f"{kind}-{number}"] = b"".join(names.get(token) or vocab.piece(token) for token in ids[start:])
    return found
