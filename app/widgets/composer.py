"""What the next message is made from: its text, the files with it, and the messages that wait for their turn.

One invariant: what was typed or attached is in exactly one place, the prompt or, once it was sent, the line of those
that wait, until `accept` says that it was taken; nothing else forgets it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import OptionList, TextArea

from app import attachments
from app.attachments import Attachment, Draft
from app.errors import AttachmentRefused
from app.path_completion import candidates, word_before
from app.widgets.chips import Chip, Chips, Count
from app.widgets.path_list import PathList
from app.widgets.prompt import PAUSE_S, QUIET_S, Prompt, is_blank
from app.widgets.waiting import Waiting
from engine.errors import EngineError

LONGEST = 4096
"""Characters before the cursor in which a path is looked for."""


def joined(drafts: Sequence[Draft]) -> Draft:
    """Several messages as one."""
    texts = [draft.text for draft in drafts if not is_blank(draft.text)]
    return Draft("\n".join(texts), tuple(file for draft in drafts for file in draft.files))


class Composer(Vertical):
    """The prompt with its files and what waits."""

    BINDINGS = [
        Binding("ctrl+o", "attach", "Attach", id="prompt.attach", show=False,
                tooltip="Add a text file: its path follows the @"),
        Binding("escape", "back", "Back", id="prompt.back", show=False,
                tooltip="Close the list of paths, or take back the message that waits"),
        Binding("backspace", "drop_last", "Remove file", id="prompt.drop_last", show=False, priority=True,
                tooltip="At the very beginning: take the last file off"),
        Binding("enter,tab", "complete", "Take path", id="prompt.complete", show=False, priority=True,
                tooltip="Take the path that is highlighted"),
        Binding("down", "step(1)", "Next path", id="prompt.next_path", show=False, priority=True,
                tooltip="The next path of the list"),
        Binding("up", "step(-1)", "Path before", id="prompt.path_before", show=False, priority=True,
                tooltip="The path before in the list"),
    ]  # fmt: skip

    @dataclass
    class Submitted(Message):
        """This is to be sent now; it stays here until `accept`."""

        draft: Draft
        waited: bool = False
        """Whether it had to wait for its turn: the user may be elsewhere by now."""

    @dataclass
    class Paused(Message):
        """The next message has changed, and then not for a while."""

        draft: Draft

    @dataclass
    class Counted(Message):
        """The next message, its files included, has so many tokens, as far as that is known."""

        tokens: int

    busy: reactive[bool] = reactive(False, init=False)
    """Whether a message that is sent has to wait; those that wait are sent one by one, each time this ends."""

    prompt = getters.query_one(Prompt)
    chips = getters.query_one(Chips)
    waiting = getters.query_one(Waiting)
    paths = getters.query_one(PathList)

    def __init__(self, *, quiet_s: float = QUIET_S, pause_s: float = PAUSE_S, folder: Path | None = None) -> None:
        """`folder` is where paths begin that are not whole; None takes the current one."""
        super().__init__()
        self._quiet_s, self._pause_s, self._folder = quiet_s, pause_s, folder
        self._offered: Draft | None = None
        """What was submitted, and neither accepted nor refused yet."""
        self._count: Count | None = None
        self._typed = 0
        """Tokens of the text, when it was counted last."""

    def compose(self) -> ComposeResult:
        """What waits, the files, the paths to choose from, the prompt."""
        yield Waiting()
        yield Chips()
        yield PathList()
        yield Prompt(quiet_s=self._quiet_s, pause_s=self._pause_s)

    @property
    def draft(self) -> Draft:
        """The next message as it stands."""
        return Draft(self.prompt.text, self.chips.files)

    @property
    def held(self) -> Draft:
        """All that is here: what waits, and the next message."""
        return joined((*self.waiting.drafts, self.draft))

    # Down: what the screen tells it

    async def accept(self, draft: Draft) -> None:
        """This message was taken: forget it here."""
        self._offered = None
        self.waiting.drafts = tuple(one for one in self.waiting.drafts if one is not draft)

    def refuse(self) -> None:
        """What was submitted cannot be taken now: it waits on."""
        self._offered = None

    async def put(self, draft: Draft) -> None:
        """Hold this message, before what is being typed."""
        texts = [text for text in (draft.text, self.prompt.text) if not is_blank(text)]
        self.prompt.put("\n".join(texts))
        await self.chips.add(*draft.files)
        self.prompt.focus()

    async def clear(self) -> Draft:
        """Hold nothing, and give all that was held: another conversation comes up."""
        held, draft = self.held, self.draft
        self.waiting.drafts, self._offered = (), None
        self.prompt.put("")
        await self.chips.clear(draft.files)
        return held

    def count_by(self, count: Count | None) -> None:
        """How tokens are counted: None while no model is loaded."""
        self._count = count
        self.chips.count_by(count)
        self._measure()

    def remember(self, inputs: Sequence[str]) -> None:
        """The earlier inputs, newest first."""
        self.prompt.remember(inputs)

    # Sending and waiting

    @on(Prompt.Submitted)
    async def _submit(self, event: Prompt.Submitted) -> None:
        event.stop()
        draft = Draft(event.text, self.chips.files)
        blank = is_blank(event.text) and not draft.files
        if not blank:
            self.waiting.drafts = (*self.waiting.drafts, draft)
            await self._forget(draft)
        elif not self.waiting.drafts:
            self.notify("Write something first.", markup=False)
        self.send_next(waited=False)

    async def _forget(self, draft: Draft) -> None:
        self.prompt.accept(draft.text)
        await self.chips.clear(draft.files)

    def watch_busy(self) -> None:
        """Send what waits next; while something has to wait nothing is counted."""
        self._offered = None
        self.send_next()
        self._measure()

    def send_next(self, *, waited: bool = True) -> None:
        """Send what waits next, unless it has to wait on."""
        if not self.busy and self.waiting.drafts and self._offered is None:
            self._offered = self.waiting.drafts[0]
            self.post_message(self.Submitted(self._offered, waited))

    @on(Waiting.TakenBack)
    async def take_back(self) -> None:
        """Give the message that was sent last back to the prompt."""
        if self.waiting.drafts:
            *rest, last = self.waiting.drafts
            self.waiting.drafts = tuple(rest)
            await self.put(last)

    @on(Prompt.Paused)
    def _paused(self, event: Prompt.Paused) -> None:
        event.stop()
        self._measure()
        self.post_message(self.Paused(self.draft))

    @on(Chips.Changed)
    def _files_changed(self, event: Chips.Changed) -> None:
        event.stop()
        self._tell()
        self.post_message(self.Paused(self.draft))

    # What it takes of the context

    def _measure(self) -> None:
        """Count the text, unless an answer is being written or no model is loaded."""
        if self._count is None or self.busy:
            self.workers.cancel_group(self, "typed")
            self._typed = 0
            self._tell()
        else:
            counting = partial(self._counted, self._count, self.prompt.text)
            self.run_worker(counting, group="typed", exclusive=True)

    async def _counted(self, count: Count, text: str) -> None:
        with suppress(EngineError):
            self._typed = 0 if is_blank(text) else await count(text)
            self._tell()

    @on(Chips.Counted)
    def _files_counted(self, event: Chips.Counted) -> None:
        event.stop()
        self._tell()

    def _tell(self) -> None:
        known = self._count is not None and not self.busy
        self.post_message(self.Counted(self._typed + self.chips.tokens if known else 0))

    # Files

    def attach(self, *files: Path) -> None:
        """Read these files and add them to the message; each that cannot be read is refused in one line."""
        self.run_worker(self._read(files), group="attach")

    async def _read(self, files: Sequence[Path]) -> None:
        read: list[Attachment] = []
        for file in files:
            try:
                read.append(await asyncio.to_thread(attachments.read, file))
            except AttachmentRefused as error:
                self.notify(str(error), severity="warning", markup=False)
        await self.chips.add(*read)

    @on(Prompt.FilesDropped)
    def _dropped(self, event: Prompt.FilesDropped) -> None:
        event.stop()
        self.attach(*event.paths)

    def action_attach(self) -> None:
        """Begin a path at the cursor."""
        row, column = self.prompt.cursor_location
        before = self.prompt.document.get_line(row)[:column]
        self.prompt.focus()
        self.prompt.replace_before_cursor(0, "@" if not before or before[-1].isspace() else " @")

    async def action_drop_last(self) -> None:
        """Take the last file off."""
        await self.chips.take(*list(self.query(Chip))[-1:])

    # Paths behind an @

    @on(TextArea.SelectionChanged)
    def _look(self) -> None:
        """Offer paths for the word before the cursor."""
        word = self._word()
        if word is None:
            self.workers.cancel_group(self, "paths")
            self.paths.offer([])
        else:
            self.run_worker(self._offer(word), group="paths", exclusive=True)

    def _word(self) -> str | None:
        row, column = self.prompt.cursor_location
        before = self.prompt.document.get_line(row)[max(0, column - LONGEST) : column]
        return word_before(before) if self.prompt.selection.is_empty else None

    async def _offer(self, word: str) -> None:
        folder = self._folder or Path.cwd()
        self.paths.offer(await asyncio.to_thread(candidates, word, folder))

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_complete()

    def action_complete(self) -> None:
        """Go on into the folder, or attach the file, that is highlighted."""
        chosen, word = self.paths.chosen, self._word()
        if chosen is None or word is None:
            return
        if chosen.folder:
            self.prompt.replace_before_cursor(len(word), chosen.word)
        else:
            self.prompt.replace_before_cursor(len(word) + 1, "")
            self.paths.offer([])
            self.attach(chosen.path)
        self.prompt.focus()

    def action_step(self, by: int) -> None:
        """Move in the list of paths."""
        if by > 0:
            self.paths.action_cursor_down()
        else:
            self.paths.action_cursor_up()

    # Keys

    async def action_back(self) -> None:
        """Close the list of paths; else take back what waits."""
        if self.paths.open:
            self.workers.cancel_group(self, "paths")
            self.paths.offer([])
        else:
            await self.take_back()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that mean something else unless a list is open, a message waits or the cursor is at the beginning."""
        if action in ("complete", "step"):
            return self.paths.open and self.prompt.has_focus
        if action == "back":
            return self.paths.open or bool(self.waiting.drafts)
        if action == "drop_last":
            at_start = self.prompt.has_focus and self.prompt.cursor_location == (0, 0)
            return at_start and self.prompt.selection.is_empty and bool(self.chips.files)
        return super().check_action(action, parameters)
