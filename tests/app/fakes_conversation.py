"""A window with a conversation in it and nothing else but a field to type into."""

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from app.transcript import Entry
from app.widgets.conversation import Conversation
from tests.fakes_client import answer


class ConversationApp(App[None]):
    """Keeps which messages were chosen."""

    CSS_PATH = "../../app/screens/chat.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[int | None] = []
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield Conversation()
        yield Input()

    @property
    def conversation(self) -> Conversation:
        """The conversation."""
        return self.query_one(Conversation)

    def on_conversation_message_chosen(self, event: Conversation.MessageChosen) -> None:
        """Keep it."""
        self.chosen.append(event.index)


def talk(count: int) -> list[Entry]:
    """Questions and answers in turn, several lines each."""
    return [
        Entry.of_answer(answer(f"answer {number}\n\n- a\n- b"))
        if number % 2
        else Entry("user", f"question {number}", id=number)
        for number in range(count)
    ]


async def settled(pilot: Pilot[None]) -> None:
    """Let the window come to rest: nothing has moved, and no widget has come or gone, for a few turns."""
    seen: list[object] = []
    while len(seen) < 4 or any(one != seen[-1] for one in seen[-4:]):
        await pilot.pause()
        conversation = pilot.app.query(Conversation)
        seen.append([(node.scroll_y, node.virtual_size, list(node.walk_children())) for node in conversation])
        assert len(seen) < 500, "the window never comes to rest"
