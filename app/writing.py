"""The answer that is being written: to which conversation it belongs, and what has come of it so far.

It is kept as it grows, whatever the window shows meanwhile; what an engine still says of it after its end is lost on
purpose.
"""

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as altered

from app.store.growing import Growing
from app.transcript import Entry
from engine.events import TokenTrace
from engine.joining import whole_text, whole_trace
from engine.stats import Answer


class Writing:
    """One answer; `earlier` is the part of it that was there before, where it goes on."""

    def __init__(self, conversation: int, growing: Growing, earlier: Entry | None = None) -> None:
        self.conversation = conversation
        self._growing, self._earlier = growing, earlier
        self._parts: list[str] = [earlier.text] if earlier else []
        self.trace: list[TokenTrace] = list(earlier.trace) if earlier else []
        """Where each token came from."""
        self.begun = False
        """Whether anything new has come."""

    @property
    def id(self) -> int | None:
        """Its number in the store; None while nothing of it is kept."""
        return self._growing.number

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self._parts)

    def take(self, text: str, trace: Sequence[TokenTrace]) -> None:
        """More of it; StoreError where it cannot be kept, which costs nothing that is on the screen."""
        self.begun = self.begun or bool(text)
        self._parts.append(text)
        self.trace += trace
        self._growing.add(text)

    def finish(self, answer: Answer) -> Entry:
        """It is done, or was stopped; the entry that it is."""
        entry = Entry.of_answer(self._whole(answer))
        if self._earlier is None:
            return replace(entry, trace=tuple(self.trace[: len(answer.ids)]))
        new = self.trace[len(self._earlier.trace) :][: len(answer.ids)]
        return replace(entry, trace=whole_trace(self._earlier.trace, answer, new))

    def break_off(self) -> Entry | None:
        """It ends where it is; None where it has not begun."""
        if not self.begun:
            return None
        return Entry("assistant", self.text, None, "broken off", trace=tuple(self.trace))

    def keep(self, entry: Entry) -> int | None:
        """Keep this entry as what it is; its number."""
        return self._growing.end(entry)

    def _whole(self, answer: Answer) -> Answer:
        """The record of both parts: the text and ids of both, the figures of the new one."""
        if self._earlier is None:
            return answer
        before = self._earlier.answer
        ids = [*(before.ids if before else []), *answer.ids] if before else []
        return altered(answer, text=whole_text(self._earlier.text, answer), ids=ids)
