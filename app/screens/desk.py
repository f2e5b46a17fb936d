"""The chat's page: conversations at its left, figures at its right, messages and the prompt between, and its folding.

It shows and folds; what is said and answered is for those who build on it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from textual import events, getters
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from app.bridge import Bridge
from app.chat import Chat
from app.errors import AppError
from app.live import Meter
from app.pace import Pace
from app.setup import Setup
from app.store.store import Store
from app.widgets.composer import Composer
from app.widgets.conversation import Conversation
from app.widgets.panel import Panel
from app.widgets.prompt import Prompt
from app.widgets.sidebar import Sidebar
from app.widgets.status import StatusLine
from app.widgets.title_bar import TitleBar

State = Literal["loading", "ready", "writing", "dead", "asleep"]


class Desk(Screen[None]):
    """All widgets of the chat, over one store."""

    CSS_PATH = ["chat.tcss", "composer.tcss", "../widgets/sidebar.tcss", "../widgets/panel.tcss"]
    AUTO_FOCUS = "#prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    BINDINGS = [
        Binding("ctrl+b", "chats", "Chats", id="chat.chats", tooltip="Show or hide all conversations", priority=True),
        Binding(
            "ctrl+f", "search", "Search", id="chat.search", show=False, priority=True,
            tooltip="Search all conversations",
        ),
        Binding(
            "f3", "figures", "Figures", id="chat.figures", show=False,
            tooltip="Show or hide the panel of figures",
        ),
        Binding(
            "f4", "colours", "Origins", id="chat.colours", show=False,
            tooltip="Colour tokens by where they came from",
        ),
        Binding(
            "ctrl+up", "browse", "Messages", id="chat.browse", show=False, priority=True,
            tooltip="Go through the messages",
        ),
        Binding(
            "pageup", "earlier", "Scroll up", id="chat.up", show=False, priority=True,
            tooltip="Scroll the conversation up",
        ),
        Binding(
            "pagedown", "later", "Scroll down", id="chat.down", show=False, priority=True,
            tooltip="Scroll the conversation down",
        ),
        Binding(
            "ctrl+end", "end", "To the end", id="chat.end", show=False, priority=True,
            tooltip="Follow the end of the conversation",
        ),
    ]  # fmt: skip

    @dataclass
    class NoticeWanted(Message):
        """The terminal is to tell this, also where the user looks at something else."""

        text: str

    state: reactive[State] = reactive[State]("loading", init=False)
    """What the engine does: asleep has given its memory back, dead cannot go on by itself."""

    conversation = getters.query_one(Conversation)
    composer = getters.query_one(Composer)
    prompt = getters.query_one(Prompt)
    status = getters.query_one(StatusLine)
    title_bar = getters.query_one(TitleBar)
    sidebar = getters.query_one(Sidebar)
    panel = getters.query_one(Panel)

    def __init__(self, setup: Setup, store: Store) -> None:
        super().__init__()
        self.setup = setup
        self.bridge = Bridge(self, setup.start, setup.log, Pace(setup.frame_s), Meter(clock=setup.clock))
        self.chat = Chat(store, self.bridge, setup.caches, setup.settings, setup.remember)

    def compose(self) -> ComposeResult:
        """Conversations; title, messages, figures and prompt; more figures; keys."""
        with Horizontal(id="desk") as desk:
            yield Sidebar(self.chat.store)
            with Vertical(id="chat") as chat:
                desk.BLANK = chat.BLANK = True  # every frame would cut up their lines, of which nothing is seen
                yield TitleBar()
                yield Conversation()
                yield StatusLine()
                yield Composer(quiet_s=self.setup.quiet_s)
            yield Panel(paint_s=self.setup.paint_s)
        yield Footer(show_command_palette=False)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out once, and draw it once.

        Textual would do both again for each widget whose size this has changed, though the sizes are what came of it.
        """
        size_of_content = Widget.virtual_size
        before = size_of_content._layout, size_of_content._repaint  # type: ignore[attr-defined]
        size_of_content._layout = size_of_content._repaint = False  # type: ignore[attr-defined]
        try:
            super()._refresh_layout(size, scroll)
        finally:
            size_of_content._layout, size_of_content._repaint = before  # type: ignore[attr-defined]

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Say in one line what the store, or a file, refuses."""
        try:
            yield
        except AppError as error:
            self.notify(str(error), severity="error", markup=False)

    def ring(self) -> None:
        """Say that an answer has ended, where that is wanted."""
        bell = self.chat.settings.window.bell
        if bell == "sound":
            self.app.bell()
        elif bell == "notice":
            self.post_message(self.NoticeWanted("Paceline: the answer is here"))

    def copy(self, text: str, said: str) -> None:
        """Put a text into the clipboard, also of a terminal far away, and say so."""
        self.app.copy_to_clipboard(text)
        self.notify(said, markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Lists page themselves."""
        if action in ("earlier", "later"):
            around = self.focused.ancestors_with_self if self.focused else ()
            return not any(isinstance(node, Sidebar | Panel) for node in around)
        return super().check_action(action, parameters)

    def on_resize(self, event: events.Resize) -> None:
        """Fold what there is no room for."""
        self.panel.fit(event.size.width)

    def watch_state(self) -> None:
        """Show in the prompt and by keys what can be done."""
        self.prompt.set_class(self.state == "writing", "-writing")  # one widget: a class here would style all anew
        self.refresh_bindings()

    def action_chats(self) -> None:
        """Show or hide the conversations."""
        self.sidebar.toggle()

    def action_search(self) -> None:
        """Search them."""
        self.sidebar.action_search()

    def action_figures(self) -> None:
        """Show or hide the panel."""
        self.panel.toggle()

    def action_colours(self) -> None:
        """Show where each token came from, or not."""
        self.conversation.coloured = not self.conversation.coloured

    def action_browse(self) -> None:
        """Go through the messages by keys."""
        self.conversation.browse()

    async def action_earlier(self) -> None:
        """Scroll the conversation up a page."""
        await self.conversation.page_up()

    def action_later(self) -> None:
        """Scroll the conversation down a page."""
        self.conversation.scroll_page_down(animate=False)

    def action_end(self) -> None:
        """Follow the end again."""
        self.conversation.anchor()
