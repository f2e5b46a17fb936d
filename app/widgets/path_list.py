"""Paths to choose from while an `@` is being written: shown below the files, the keys stay with the prompt."""

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.cells import cut
from app.path_completion import Candidate


class PathList(OptionList, can_focus=False):
    """The candidates of one word; hidden where there are none.  Choosing posts OptionSelected."""

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False)
        self._candidates: list[Candidate] = []
        self.display = False

    def offer(self, candidates: list[Candidate]) -> None:
        """Show these, the first one chosen for now."""
        self._candidates = candidates
        self.clear_options()
        self.add_options(Option(self._line(candidate)) for candidate in candidates)
        self.highlighted = 0 if candidates else None
        self.display = bool(candidates)

    def _line(self, candidate: Candidate) -> Content:
        name = cut(candidate.shown, 60)
        return name.stylize("$text-primary") if candidate.folder else name

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that is highlighted."""
        return None if self.highlighted is None else self._candidates[self.highlighted]

    @property
    def open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self._candidates)
