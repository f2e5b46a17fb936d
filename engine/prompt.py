"""Messages to the ids of a prompt: the model's own template, its control tokens, and nobody else's.

Two invariants: the control tokens of a prompt are those of the template, whatever the messages spell; and the ids of
an answer that comes back in its message are its generated ids, so a next prompt begins with the last one's.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

from engine.config import Message
from engine.control import ControlTexts
from engine.errors import EmptyPrompt, TemplateFailed
from engine.model import Vocabulary
from engine.plain import PlainText
from engine.splice import Part, kept, stand_ins, untouched
from engine.templates import CHATML, PLAIN, ChatTemplate, TemplateExhausted

_SURROGATES = re.compile("[\ud800-\udfff]")
_QUESTION = Message(role="user", content="x")
Render = Callable[[Sequence[Message], Sequence[str]], str]
"""Messages with other contents in, the text of their prompt out; raises TemplateFailed."""


class Chat:
    """Prompts for one model; for one thread at a time."""

    note: str | None = None
    """A sentence for the user where the model brings no template."""
    stops: tuple[str, ...] = ()
    """Stop strings that the form of the prompt needs."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab
        self._plain = PlainText(vocab)
        self._source = vocab.chat_template or ""
        if self._source.strip():
            return
        if {"<|im_start|>", "<|im_end|>"} <= vocab.control.keys():
            self._source = CHATML
            self.note = "the model brings no chat template: ChatML is used, whose tokens it knows"
        else:
            self._source = PLAIN
            self.stops = ("\nUser:",)
            self.note = "the model brings no chat template: a plain User/Assistant form is used, so answers may be odd"

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self._source)

    @cached_property
    def _control(self) -> ControlTexts:
        return ControlTexts(self._vocab.control, self._template.literals)

    @cached_property
    def _ends(self) -> tuple[str, str]:
        """What templates know as bos_token and eos_token."""
        names: dict[int | None, str] = {token: text for text, token in self._vocab.control.items()}
        return names.get(self._vocab.bos, ""), names.get(self._vocab.eos, "")

    @property
    def thinks(self) -> bool:
        """Whether the template can be told to think or not; of one that fails the first prompt will say so."""
        try:
            return bool(self._template.switches)
        except TemplateFailed:
            return False

    def begun(self, message: Message, thinking: bool | None = None) -> list[int]:
        """Ids of an answer's beginning, to stand behind a prompt: its own as far as they are its text.

        The template has no part in it: many would strip or change what they are given as a whole answer.
        """
        message = _without_surrogates(message)
        ids, text = message.ids or (), message.content
        count, size = kept(ids, text, self._vocab.piece)
        last = ids[count - 1] if count else self.ids([_QUESTION], thinking)[-1]
        return [*ids[:count], *self._plain.ids(text[size:], last, None)]

    def ids(self, messages: Sequence[Message], thinking: bool | None = None) -> list[int]:
        """The whole prompt, up to where the assistant begins; `thinking` is told to a template that can be told.

        A template that refuses the messages gets them in plainer forms: the system prompt within the first user
        message, then neighbours of one role as one.  Raises EmptyPrompt and TemplateFailed.
        """
        if _blank(next((m.content for m in reversed(messages) if m.role == "user"), "")):
            raise EmptyPrompt("there is nothing to answer: write a message first")
        clean = [_without_surrogates(message) for message in messages]
        refusal: TemplateFailed | None = None
        for form in _forms(clean):
            try:
                return self._assemble(form, thinking)
            except TemplateExhausted:
                raise
            except TemplateFailed as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def _assemble(self, messages: Sequence[Message], thinking: bool | None) -> list[int]:
        marks = stand_ins([*(m.content for m in messages), self._source, *self._vocab.control])
        hidden: dict[str, str] = {}

        def stand_in(character: str) -> str:
            if character not in hidden:
                hidden[character] = next(marks)
            return hidden[character]

        contents = [self._control.hide(message.content, stand_in) for message in messages]
        render = partial(self._render, thinking=thinking)
        text = render(messages, contents)
        _check_system(messages, contents, text, render)
        cuts: list[tuple[int, int, Sequence[int]]] = [
            (start, end, (token,)) for start, end, token in self._control.find(text)
        ]
        cuts += self._answers(messages, contents, text, marks, render)
        return self._join(text, sorted(cuts), {mark: character for character, mark in hidden.items()})

    def _render(self, messages: Sequence[Message], contents: Sequence[str], thinking: bool | None) -> str:
        pairs = [{"role": m.role, "content": content} for m, content in zip(messages, contents, strict=True)]
        return self._template.render(pairs, *self._ends, thinking)

    def _answers(
        self, messages: Sequence[Message], contents: Sequence[str], text: str, marks: Iterator[str], render: Render
    ) -> list[tuple[int, int, Sequence[int]]]:
        """Where in the text which generated ids stand: whole answers, or without the blanks that were trimmed."""
        places: dict[Part, int] = {}
        for trim in (False, True):
            known = {part.message for part in places}
            parts = [
                _part(at, message.content, trim)
                for at, message in enumerate(messages)
                if message.ids and message.content.strip() and at not in known
            ]
            places |= untouched(parts, contents, text, partial(render, messages), marks)
        cuts: list[tuple[int, int, Sequence[int]]] = []
        for part, at in places.items():
            message = messages[part.message]
            ids = message.ids or ()
            count, size = kept(ids, message.content[part.start : part.end], self._vocab.piece)
            if count:
                cuts.append((at, at + size, ids[:count]))
        return cuts

    def _join(self, text: str, cuts: Sequence[tuple[int, int, Sequence[int]]], hidden: dict[str, str]) -> list[int]:
        """Ids of the cuts, and of the plain text between them with its own characters again."""
        ids: list[int] = []
        at = 0
        for start, end, tokens in [*cuts, (len(text), len(text), ())]:
            plain = text[at:start]
            for mark, character in hidden.items():
                plain = plain.replace(mark, character)
            ids += self._plain.ids(plain, ids[-1] if ids else None, tokens[0] if tokens else None)
            ids += tokens
            at = end
        opening = [] if self._vocab.bos is None or ids[:1] == [self._vocab.bos] else [self._vocab.bos]
        return opening + ids


def _check_system(messages: Sequence[Message], contents: Sequence[str], text: str, render: Render) -> None:
    """A template that leaves out the system prompt refuses it, too, without saying so."""
    system = [at for at, message in enumerate(messages) if message.role == "system"]
    if all(contents[at].strip() in text for at in system):
        return
    rest = [at for at in range(len(messages)) if at not in system]
    if render([messages[at] for at in rest], [contents[at] for at in rest]) == text:
        raise TemplateFailed("the model's chat template leaves out the system prompt")


def _part(at: int, content: str, trim: bool) -> Part:
    if not trim:
        return Part(at, 0, len(content))
    return Part(at, len(content) - len(content.lstrip()), len(content.rstrip()))


def _blank(text: str) -> bool:
    """Whether nothing of a text can be seen: white space, format and control characters alone."""
    return all(character.isspace() or unicodedata.category(character) in ("Cc", "Cf") for character in text)


def _without_surrogates(message: Message) -> Message:
    """Halves of characters, which no tokenizer can take, as replacement characters."""
    clean = _SURROGATES.sub("\ufffd", message.content)
    return message if clean == message.content else Message(role=message.role, content=clean, ids=message.ids)


def _forms(messages: list[Message]) -> Iterator[list[Message]]:
    yield messages
    folded = _fold_system(messages)
    if folded != messages:
        yield folded
    merged = _merge(folded)
    if merged != folded:
        yield merged


def _fold_system(messages: list[Message]) -> list[Message]:
    """The system prompts at the head of the first user message."""
    texts = [message.content for message in messages if message.role == "system"]
    rest = [message for message in messages if message.role != "system"]
    if not texts:
        return messages
    at = next(at for at, message in enumerate(rest) if message.role == "user")
    rest[at] = Message(role="user", content="\n\n".join([*texts, rest[at].content]))
    return rest


def _merge(messages: list[Message]) -> list[Message]:
    """Neighbours of one role as one message."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            last = merged.pop()
            message = Message(role=message.role, content=f"{last.content}\n\n{message.content}")  # noqa: PLW2901
        merged.append(message)
    return merged
