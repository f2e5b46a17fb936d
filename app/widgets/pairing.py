"""The target and the draft that are chosen one by one, and whether the one can draft for the other.

A draft that is known not to fit is never the chosen one; vocabularies are compared one pair after another, and no two
models twice.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from app.cells import cut, one_line
from app.setup import DraftFit, Shelf
from app.themes import MUTED
from app.widgets.task import reason

LOOKUP = "none, from the conversation alone"
INVITATION = "Enter loads a pair; or choose a target and a draft one by one, and load them."


class Pairing(Widget):
    """Two lines: what is chosen, and how it fits."""

    DEFAULT_CSS = """
    Pairing {
        width: 1fr;
        height: 2;
        padding: 0 1;
    }
    """

    @dataclass
    class Changed(Message):
        """Another choice, or more is known of what fits the target."""

    @dataclass
    class Refused(Message):
        """This cannot draft for the target."""

        draft: str
        why: str

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self._shelf = shelf
        self.target: str | None = None
        self.draft: str | None = None
        self._fits: dict[tuple[str, str], DraftFit] = {}
        self._comparing = asyncio.Lock()

    def fit_of(self, draft: str) -> DraftFit | None:
        """How a model fits the chosen target; None where that is not known."""
        return None if self.target is None else self._fits.get((self.target, draft))

    def take(self, target: str, draft: str | None, others: Iterable[str]) -> None:
        """Choose a target, a draft that is said to fit it, and find out which of the others would."""
        self.target, self.draft = target, draft
        self._tell()
        names = [name for name in others if name != target]
        self.run_worker(partial(self._compare, target, names), group="compare", exclusive=True)

    async def _compare(self, target: str, drafts: list[str]) -> None:
        for draft in drafts:
            await self._fit(target, draft)
            self._tell()

    def take_draft(self, draft: str) -> None:
        """Choose a draft once it is known to fit; the one that is chosen is given up."""
        if draft == self.draft:
            self.draft = None
            self._tell()
        elif self.target is None:
            self.post_message(self.Refused(draft, "choose a target first, then what drafts for it"))
        else:
            self.run_worker(partial(self._take_draft, self.target, draft), group="draft", exclusive=True)

    async def _take_draft(self, target: str, draft: str) -> None:
        fit = await self._fit(target, draft)
        if target != self.target:
            return
        if fit.fits:
            self.draft = draft
        else:
            self.post_message(self.Refused(draft, fit.reason))
        self._tell()

    async def _fit(self, target: str, draft: str) -> DraftFit:
        async with self._comparing:
            if (target, draft) not in self._fits:
                self._fits[target, draft] = await self._compared(target, draft)
            return self._fits[target, draft]

    async def _compared(self, target: str, draft: str) -> DraftFit:
        try:
            return await asyncio.to_thread(self._shelf.draft_fit, target, draft)
        except Exception as error:
            return DraftFit(False, reason(error))

    def forget(self, id: str) -> None:
        """A model has gone, or is another one now."""
        self._fits = {pair: fit for pair, fit in self._fits.items() if id not in pair}
        if id == self.target:
            self.target = self.draft = None
        elif id == self.draft:
            self.draft = None
        self._tell()

    def _tell(self) -> None:
        self.refresh()
        self.post_message(self.Changed())

    def render(self) -> Content:
        """The choice, and how it fits."""
        width = self.content_size.width
        if self.target is None:
            return cut(Content.styled(INVITATION, MUTED), width)
        chosen = Content.assemble(
            ("target ", MUTED), (one_line(self.target), "bold"),
            ("  draft ", MUTED), (one_line(self.draft), "bold") if self.draft else (LOOKUP, MUTED),
        )  # fmt: skip
        fit = self.fit_of(self.draft) if self.draft else None
        why = Content.styled(one_line(fit.reason) if fit else "", MUTED)
        return Content("\n").join([cut(chosen, width), cut(why, width)])
