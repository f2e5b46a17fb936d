"""The answer that is being written: to which branch it belongs, and what has come of it so far.

It is kept as it grows, whatever the window shows meanwhile; what an engine still says of it after its end is lost on
purpose.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from app.branch import Branch
from app.store.growing import Growing
from app.transcript import Entry
from engine.events import TokenTrace
from engine.joining import whole_answer, whole_trace
from engine.stats import Answer


class Writing:
    """One answer; `earlier` is the part of it that was there before, where it goes on."""

    def __init__(self, branch: Branch, growing: Growing, earlier: Entry | None = None) -> None:
        self.branch = branch
        self._growing, self._earlier = growing, earlier
        self._parts: list[str] = [earlier.text] if earlier else []
        self.trace: list[TokenTrace] = list(earlier.trace) if earlier else []
        """Where each token came from."""
        self.opening = earlier.opening if earlier else ""
        """The tag by which its prompt opened a thought, in which it begins; empty: none."""
        self.begun = False
        """Whether anything new has come."""
        self._end = asyncio.Event()

    @property
    def stopped(self) -> bool:
        """Whether the user wants it to end, perhaps before the engine has been asked."""
        return self._end.is_set()

    def stop(self) -> None:
        """The user wants it to end."""
        self._end.set()

    async def unless_stopped(self, work: asyncio.Future[None]) -> None:
        """Wait until this is done, or until the user wants the answer to end."""
        stopped = asyncio.ensure_future(self._end.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()

    @property
    def goes_on(self) -> bool:
        """Whether a part of it was there before."""
        return self._earlier is not None

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self._parts)

    def open(self, opening: str) -> None:
        """Its prompt opens a thought by this tag, or none where that is empty; what goes on has begun as it has."""
        if self._earlier is None:
            self.opening = opening
            self._growing.open(opening)

    def take(self, text: str, trace: Sequence[TokenTrace]) -> None:
        """More of it; StoreError where it cannot be kept, which costs nothing that is on the screen."""
        self.begun = self.begun or bool(text)
        self._parts.append(text)
        self.trace += trace
        self._growing.add(text)

    def finish(self, answer: Answer) -> Entry:
        """It is done, or was stopped; the entry that it is."""
        if self._earlier is None:
            return replace(Entry.of_answer(answer), trace=tuple(self.trace[: len(answer.ids)]))
        whole = whole_answer(self._earlier.answer, self._earlier.text, answer)
        new = self.trace[len(self._earlier.trace) :][: len(answer.ids)]
        trace = whole_trace(self._earlier.trace, answer, new)
        return replace(Entry.of_answer(whole), opening=self.opening, trace=trace)

    def break_off(self) -> Entry | None:
        """It ends where it is; None where it has not begun."""
        if not self.begun:
            return None
        return Entry("assistant", self.text, None, "broken off", trace=tuple(self.trace), opening=self.opening)

    def keep(self, entry: Entry) -> int | None:
        """Keep this entry as what it is; its number."""
        return self._growing.end(entry)
