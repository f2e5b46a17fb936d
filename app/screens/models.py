"""The model screen: what is on this machine, what can be fetched, and what is to be loaded.

Everything that reads files or the network is done in threads; one download, hashing or the like at a time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer, Static

from app.cells import spread
from app.screens import questions
from app.screens.path_dialog import PathDialog
from app.setup import Asked, Known, Offer, Report, Shelf
from app.themes import MUTED
from app.widgets.closing import unless_closing
from app.widgets.pairing import Pairing
from app.widgets.row_list import Heading, Row, RowList
from app.widgets.shelf_rows import ModelLine, PairLine
from app.widgets.task import Task, reason
from engine.config import EngineConfig

FETCHABLE = {"not installed", "partly fetched", "damaged"}


class ModelsScreen(Screen[None]):
    """Choose, fetch, check and remove models.  It stays alive where it is installed by name: a download goes on."""

    CSS_PATH = "models.tcss"
    AUTO_FOCUS = "RowList"
    BINDINGS = [
        Binding("t", "target", "Target", id="models.target", tooltip="Let this model decide (a pair: both of it)"),
        Binding("d", "draft", "Draft", id="models.draft", tooltip="Let this model draft for the target, or no longer"),
        Binding("l", "load", "Load", id="models.load", tooltip="Load the chosen target and draft"),
        Binding("u", "unload", "Unload", id="models.unload", tooltip="Give the memory of the loaded models back"),
        Binding("f", "fetch", "Fetch", id="models.fetch", tooltip="Download this pair or model"),
        Binding("v", "verify", "Verify", id="models.verify", tooltip="Hash the file again and compare it"),
        Binding("x,delete", "remove", "Remove", id="models.remove", tooltip="Delete it, or forget a file of your own"),
        Binding("a", "add", "Add", id="models.add", tooltip="Register a GGUF file of your own where it lies"),
        Binding("c", "cancel", "Cancel", id="models.cancel", tooltip="Stop what is under way; what is there is kept"),
        Binding("escape", "back", "Back", id="models.back", tooltip="Back to the chat; a download goes on"),
    ]  # fmt: skip

    loaded: reactive[tuple[str, ...]] = reactive[tuple[str, ...]]((), init=False)
    """The ids of the models that are loaded, the target's first."""

    @dataclass
    class PairChosen(Message):
        """This is to be loaded."""

        config: EngineConfig

    @dataclass
    class UnloadWanted(Message):
        """The models are to leave the memory."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self._shelf = shelf
        self._title = Static(id="models-title", markup=False)
        self._list = RowList(id="models-rows")
        self._choice = Pairing(shelf)
        self._work = Task(stopped="Stopped. What was downloaded is kept; the next fetch goes on from there.")
        self._offers: tuple[Offer, ...] = ()
        self._models: tuple[Known, ...] = ()
        self._armed: str | None = None
        """The row that a second press removes."""
        self._able: dict[str, bool] = {}
        """What could be done with the row under the cursor when the keys were last greyed."""

    def compose(self) -> ComposeResult:
        """Title, rows, the choice, the state of what is under way, keys."""
        with Vertical(id="models-page"):
            yield self._title
            yield self._list
            yield self._choice
            yield self._work
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Look what there is."""
        self.watch(self._work, "busy", self._update_keys, init=False)
        self.reload()

    def on_screen_resume(self) -> None:
        """Look again: files come and go."""
        self.reload()

    def on_resize(self) -> None:
        """The title is as wide as the list."""
        self.call_after_refresh(self._draw_title)

    # What it shows

    def reload(self) -> None:
        """Read again what there is."""
        self.run_worker(self._read, group="list", exclusive=True)

    async def _read(self) -> None:
        try:
            self._offers, self._models = await asyncio.to_thread(lambda: (self._shelf.offers(), self._shelf.models()))
        except Exception as error:
            self._complain(error)
        with unless_closing:
            self._draw()

    def _complain(self, error: Exception) -> None:
        with unless_closing:
            self._work.say(reason(error), error=True)

    @on(Pairing.Changed)
    def _draw(self) -> None:
        rows: list[Row] = [Heading("Pairs", first=True)]
        rows += [PairLine(offer, self.loaded != () and self.loaded == offer.models) for offer in self._offers]
        rows += [Heading("Models"), *(self._line(known) for known in self._models)]
        self._list.show(rows)
        self._draw_title()
        self._update_keys()

    def _update_keys(self) -> None:
        """Have keys greyed anew, which costs too much to be done at each move of the cursor."""
        if (ways := self._ways()) != self._able:
            self._able = ways
            self.refresh_bindings()

    def _line(self, known: Known) -> ModelLine:
        roles = {"target": self._choice.target, "draft": self._choice.draft}
        marks = [role for role, id in roles.items() if id == known.id]
        marks += ["loaded"] if known.id in self.loaded else []
        fit = self._choice.fit_of(known.id) if known.here else None
        return ModelLine(known, tuple(marks), fit)

    def _draw_title(self) -> None:
        from models.text import size

        free = f"{size(self._offers[0].available)} of memory free" if self._offers else ""
        line = spread(Content.styled("Models", "bold $accent"), Content.styled(free, MUTED), self._list.size.width - 3)
        self._title.update(line)

    def watch_loaded(self) -> None:
        """Mark what is loaded."""
        if self.is_mounted:
            self._draw()

    # What the user does

    @property
    def at(self) -> PairLine | ModelLine | None:
        """What the cursor is on."""
        row = self._list.row
        return row if isinstance(row, PairLine | ModelLine) else None

    @property
    def _at_id(self) -> str:
        row = self.at
        assert row is not None
        return row.offer.id if isinstance(row, PairLine) else row.known.id

    @on(RowList.Moved)
    def _moved(self) -> None:
        self._armed = None
        self._update_keys()

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        """Load a pair, take a model as target, or fetch what is not here."""
        row = self.at
        if isinstance(row, PairLine) and row.offer.installed:
            pair = row.offer.id
            self._load(lambda: self._shelf.config(pair))
        elif isinstance(row, ModelLine) and row.known.here:
            self.action_target()
        elif self.check_action("fetch", ()):
            self.action_fetch()

    def action_target(self) -> None:
        """Take this model as target, or the two of a pair."""
        here = [known.id for known in self._models if known.here]
        if isinstance(row := self.at, PairLine):
            target, draft = (*row.offer.models, None)[:2]
            self._choice.take(str(target), draft, here)
        elif row is not None:
            self._choice.take(row.known.id, None, here)

    def action_draft(self) -> None:
        """Take this model as draft, if it can be one."""
        self._work.say("")
        self._choice.take_draft(self._at_id)

    @on(Pairing.Refused)
    def _refused(self, event: Pairing.Refused) -> None:
        self._work.say(f"{event.draft}: {event.why}", error=True)

    def action_load(self) -> None:
        """Load what is chosen."""
        target, draft = self._choice.target, self._choice.draft
        if target is not None:
            self._load(lambda: self._shelf.config_of(target, draft))

    def _load(self, config: Callable[[], EngineConfig]) -> None:
        self.run_worker(partial(self._find_config, config), group="load", exclusive=True)

    async def _find_config(self, config: Callable[[], EngineConfig]) -> None:
        try:
            self.post_message(self.PairChosen(await asyncio.to_thread(config)))
        except Exception as error:
            self._complain(error)

    def action_unload(self) -> None:
        """Ask for the memory to be given back."""
        self.post_message(self.UnloadWanted())

    def action_fetch(self) -> None:
        """Download this pair or model."""
        id = self._at_id
        self._begin(f"Preparing {id}", lambda report, asked: self._shelf.fetch(id, report, asked), f"{id} is here.")

    def action_verify(self) -> None:
        """Hash it again."""
        id = self._at_id
        self._begin(f"Checking {id}", lambda report, asked: self._shelf.verify(id, report, asked), f"{id} is right.")

    def action_remove(self) -> None:
        """Remove this at the second press."""
        id, row = self._at_id, self.at
        if id in self.loaded or (isinstance(row, PairLine) and set(row.offer.models) & set(self.loaded)):
            self._work.say(f"{id} is loaded: unload it first", error=True)
        elif self._armed != id:
            self._armed = id
            self._work.say(f"The same again removes {id}.")
        else:
            self._armed = None
            self._begin(f"Removing {id}", lambda _report, _asked: self._shelf.remove(id), f"{id} is removed.")
            for gone in row.offer.models if isinstance(row, PairLine) else (id,):
                self._choice.forget(gone)

    def action_add(self) -> None:
        """Ask for a file and register it."""
        self.app.push_screen(PathDialog(questions.add_model()), self._add)

    def _add(self, path: str | None) -> None:
        if path is not None:
            self._begin(f"Reading {path}", lambda report, asked: self._shelf.add(path, report, asked), "Added.")

    def _begin(self, what: str, work: Callable[[Report, Asked], object], said: str) -> None:
        def done(_: object) -> None:
            self._work.say(said)
            self.reload()

        self._work.begin(what, work, done)

    def action_cancel(self) -> None:
        """Stop what is under way."""
        self._work.stop()

    def action_back(self) -> None:
        """Leave."""
        self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys do something now: None shows them greyed."""
        if action not in self._ways():
            return super().check_action(action, parameters)
        return True if self._ways()[action] else False if action == self._out_of_place else None

    @property
    def _out_of_place(self) -> str:
        """What is not even shown: of fetching and cancelling the one that goes with the other's time."""
        return "fetch" if self._work.busy else "cancel"

    def _ways(self) -> dict[str, bool]:
        """What can be done with the row under the cursor."""
        row, idle = self.at, not self._work.busy
        pair = row if isinstance(row, PairLine) else None
        model = row if isinstance(row, ModelLine) else None
        here = bool((pair and pair.offer.installed) or (model and model.known.here))
        fetchable = bool((pair and not here) or (model and model.known.licence and model.known.state in FETCHABLE))
        there = bool(pair or (model and model.known.state != "not installed"))
        tuned = bool(model and model.known.state == "tuned")
        return {
            "target": here and not tuned,
            "draft": here and model is not None,
            "load": self._choice.target is not None,
            "unload": bool(self.loaded),
            "fetch": fetchable and idle,
            "verify": here and idle and not tuned,
            "remove": there and idle,
            "add": idle,
            "cancel": not idle,
        }
