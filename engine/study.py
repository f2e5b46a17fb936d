"""What is measured while nobody waits: the rest of the costs, and how far wide passes change leads.

The one invariant: once its steps have ended or been closed, wherever that was, every cache holds what it held before.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

from engine.calibration import LEADS_PLAN, STRETCH, Measuring, Widths
from engine.cost_book import CostBook
from engine.cost_table import COST_WIDTHS, DRAFT_WIDTHS, FAR, FAR_WIDTHS
from engine.costs import Costs, DraftCost
from engine.flash import FlashTrial, read
from engine.verdict import Change

FAR_CONTEXT = 1024
"""Where a target's passes are timed before there is a conversation."""
ALIKE = 128
"""Behind so many tokens more or less a pass costs the same."""


class Study:
    """All that is still to be measured of one pair."""

    def __init__(
        self,
        target: CostBook,
        draft: CostBook | None = None,
        keep_leads: Callable[[Widths], None] | None = None,
        flash: FlashTrial | None = None,
    ) -> None:
        """`keep_leads` keeps how far leads change, where that is wanted and not known."""
        self._target, self._draft = target, draft
        self.keep_leads, self._flash = keep_leads, flash
        self.change: Change | None = None
        """How far leads change, once that was measured here."""

    @property
    def costs(self) -> Costs:
        """All that is known of costs so far."""
        target = self._target.table.surface()
        if self._draft is None:
            return Costs(target)
        draft = self._draft.table.surface()
        return Costs(target, {"model": DraftCost(draft(1, 0))}, {"model": lambda tokens: draft(tokens, 0)})

    def steps(self) -> Generator[bool, None, None]:
        """A pass or so each; whether something has become known by it.  Raises Interrupted, and may be begun again."""
        model = self._target.model
        if model.reach is not None and model.length:
            return  # what is tried behind a conversation could not be taken back
        yield from self._costs()
        if self._draft and self._draft.model.length <= ALIKE:
            yield from _news(self._draft.measure(self._draft.lacking(DRAFT_WIDTHS), 0))
        if model.reach is None:
            yield from self._leads()
        if not model.length and model.reach is None:
            yield from self._far()

    def _costs(self) -> Generator[bool, None, None]:
        """Behind what the cache holds, where nothing is known of passes behind about so many tokens."""
        book, held = self._target, self._target.model.length
        nearest = min(book.table.at, key=lambda known: abs(known - held))
        if abs(nearest - held) <= ALIKE:
            widths = COST_WIDTHS if nearest == min(book.table.at) else FAR_WIDTHS
            yield from _news(book.measure(book.lacking(widths, nearest), nearest))
        elif book.table.is_far(held):
            yield from _news(book.measure(book.lacking(FAR_WIDTHS, held)))

    def _leads(self) -> Generator[bool, None, None]:
        """Behind what the cache holds, too, and never behind less than at load: two stretches of text."""
        if self.keep_leads is None:
            return
        model = self._target.model
        held = model.length
        short, long = LEADS_PLAN.contexts
        contexts = max(held, short), max(held + 2 * STRETCH, long)
        measuring = Measuring(model, replace(LEADS_PLAN, contexts=contexts))
        for _ in measuring.steps():
            yield False
        if measuring.found.contexts:
            self.keep_leads(measuring.found)
            self.keep_leads, self.change = None, measuring.found.change
            yield True

    def _far(self) -> Generator[bool, None, None]:
        """Behind a longer context than an empty cache is; read for that, and forgotten."""
        book, model = self._target, self._target.model
        context = min(FAR_CONTEXT, model.n_ctx - max(FAR_WIDTHS))
        if context < FAR:
            return
        if book.lacking(FAR_WIDTHS, context) and all(known == context or known < FAR for known in book.table.at):
            try:
                for _ in read(model, context):
                    yield False
                yield from _news(book.measure(book.lacking(FAR_WIDTHS, context)))
            finally:
                model.rewind(0)
        if self._flash:
            yield from self._flash.steps(context, book.table)
            self._flash = None


def _news(done: Iterator[int]) -> Generator[bool, None, None]:
    """Whether one more is done."""
    before = 0
    for now in done:
        yield now > before
        before = now
