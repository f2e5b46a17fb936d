"""The conversation: what is mounted, where the view is, and what earlier messages cost."""

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.conversation import MOUNTED, STEP, Conversation, Earlier
from app.widgets.horizon import Horizon
from app.widgets.notice import Notice
from app.widgets.prose import Prose
from app.widgets.user_message import HEAD, UserMessage
from app.widgets.welcome import Welcome
from tests.app.fakes_shelf import until
from tests.fakes_client import answer


class ConversationApp(App[None]):
    CSS_PATH = "../../app/screens/chat.tcss"

    def compose(self) -> ComposeResult:
        yield Conversation()

    @property
    def conversation(self) -> Conversation:
        return self.query_one(Conversation)


def talk(count: int) -> list[Entry]:
    """Questions and answers in turn, several lines each."""
    asked = [Entry("user", f"question {number}") for number in range(count)]
    answered = [Entry.of_answer(answer(f"answer {number}\n\n- a\n- b")) for number in range(count)]
    return [(asked, answered)[number % 2][number] for number in range(count)]


def seen(conversation: Conversation) -> list[str]:
    return [
        str(child.render()) if isinstance(child, UserMessage) else child.query_one(Prose).source
        for child in conversation.messages
    ]


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(4):
        await pilot.pause()


async def test_of_300_messages_only_the_last_are_mounted() -> None:
    app = ConversationApp()
    async with app.run_test() as pilot:
        await app.conversation.show(talk(300))
        await settled(pilot)
        assert len(app.conversation.messages) == MOUNTED
        assert seen(app.conversation)[0] == f"question {300 - MOUNTED}"
        assert str(app.query_one(Earlier).render()) == f"▲ {300 - MOUNTED} earlier messages"
        assert app.conversation.is_vertical_scroll_end


async def test_messages_added_at_the_end_push_the_first_ones_out() -> None:
    app = ConversationApp()
    async with app.run_test() as pilot:
        conversation = app.conversation
        await conversation.show(talk(MOUNTED))
        await conversation.notice("said before")
        for entry in talk(MOUNTED):
            await conversation.add(entry)
        await settled(pilot)
        assert len(conversation.messages) == MOUNTED
        assert seen(conversation)[0] == "question 0"
        assert not conversation.query(Notice)
        assert app.query_one(Earlier).display


async def test_going_back_mounts_earlier_messages_and_keeps_the_place() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        conversation = app.conversation
        await conversation.show(talk(60))
        await settled(pilot)
        conversation.scroll_to(y=0, animate=False, immediate=True)
        await settled(pilot)
        first = conversation.messages[0]
        before = first.region.y
        await conversation.page_up()
        await settled(pilot)
        assert len(conversation.messages) == MOUNTED + STEP
        assert abs(first.region.y - before) <= 2  # the line above the messages may have gone
        assert conversation.scroll_y > 0


async def test_one_can_go_back_to_the_very_first_message() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        conversation = app.conversation
        await conversation.show(talk(45))
        await settled(pilot)
        for _ in range(4):
            conversation.scroll_to(y=0, animate=False, immediate=True)
            await conversation.page_up()
            await settled(pilot)
        assert seen(conversation)[0] == "question 0"
        assert len(conversation.messages) == 45
        assert not app.query_one(Earlier).display


async def test_a_click_on_the_line_above_goes_back_a_step() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        conversation = app.conversation
        await conversation.show(talk(40))
        await settled(pilot)
        conversation.scroll_to(y=0, animate=False, immediate=True)
        await settled(pilot)
        await pilot.click(Earlier)
        await until(pilot, lambda: len(conversation.messages) == MOUNTED + STEP)
        assert len(conversation.messages) == MOUNTED + STEP


async def test_the_view_follows_the_answer() -> None:
    app = ConversationApp()
    async with app.run_test(size=(60, 12)) as pilot:
        conversation = app.conversation
        await conversation.add(Entry("user", "go"))
        await conversation.begin()
        for number in range(40):
            await conversation.write(f"line {number}\n\n")
        await settled(pilot)
        assert conversation.following
        assert conversation.scroll_y == conversation.max_scroll_y > 0


async def test_a_reader_who_scrolled_up_stays_where_they_are_also_at_the_end() -> None:
    app = ConversationApp()
    text = "".join(f"line {number}\n\n" for number in range(500))
    async with app.run_test(size=(60, 12)) as pilot:
        conversation = app.conversation
        await conversation.begin()
        await conversation.write(text[:400])
        await settled(pilot)
        conversation.scroll_to(y=5, animate=False, immediate=True)
        await settled(pilot)
        await conversation.write(text[400:])
        await settled(pilot)
        assert conversation.scroll_y == 5
        await conversation.finish(Entry.of_answer(answer(text)))
        await settled(pilot)
        assert conversation.scroll_y == 5
        assert not conversation.following
        await conversation.add(Entry("user", "next"))
        await settled(pilot)
        assert conversation.following


async def test_an_empty_conversation_shows_the_welcome_until_something_is_said() -> None:
    app = ConversationApp()
    async with app.run_test() as pilot:
        assert app.query(Welcome)
        await app.conversation.notice("a note")
        await pilot.pause()
        assert not app.query(Welcome)
        await app.conversation.show([])
        assert app.query(Welcome)
        assert not app.query(Notice)


async def test_a_long_message_shows_its_head() -> None:
    app = ConversationApp()
    async with app.run_test() as pilot:
        await app.conversation.add(Entry("user", "\n".join(str(number) for number in range(5000))))
        await pilot.pause()
        lines = str(app.query_one(UserMessage).render()).split("\n")
        assert lines[:2] == ["0", "1"]
        assert lines[HEAD:] == [f"… and {5000 - HEAD:,} more lines"]


async def test_the_last_block_is_whole_after_the_full_update() -> None:
    text = "Code:\n\n```python\nprint(1)\n```"
    app = ConversationApp()
    async with app.run_test() as pilot:
        await app.conversation.begin()
        for letter in text:
            await app.conversation.write(letter)
        await app.conversation.finish(Entry.of_answer(answer(text)))
        await settled(pilot)
        blocks = app.query_one(AnswerMessage).query_one(Prose).children
        assert [type(block).__name__ for block in blocks] == ["MarkdownParagraph", "ProseFence"]
        assert blocks[1].code == "print(1)"  # type: ignore[attr-defined]


def below_horizon(conversation: Conversation) -> list[str]:
    """The text of the message under each line that says what the model no longer sees."""
    page = list(conversation.query_one("#page").children)
    lines = [page.index(line) for line in conversation.query(Horizon)]
    return [seen(conversation)[conversation.messages.index(page[at + 1])] for at in lines]


async def test_a_line_parts_what_the_model_no_longer_sees_from_what_it_sees() -> None:
    app = ConversationApp()
    async with app.run_test() as pilot:
        conversation = app.conversation
        await conversation.show(talk(6))
        assert below_horizon(conversation) == []
        await conversation.begin()
        await conversation.finish(Entry.of_answer(answer("first to forget", forgotten=2)))
        await settled(pilot)
        assert below_horizon(conversation) == ["question 2"]
        assert "no longer sees" in str(conversation.query_one(Horizon).render())
        await conversation.begin()
        await conversation.finish(Entry("assistant", "half", ending="broken off"))
        assert below_horizon(conversation) == ["question 2"]
        await conversation.begin()
        await conversation.finish(Entry.of_answer(answer("forgot more", forgotten=4)))
        assert below_horizon(conversation) == ["question 4"]
        await conversation.show(talk(2))
        assert below_horizon(conversation) == []


async def test_the_line_is_where_it_belongs_when_messages_are_mounted_and_left_out() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        conversation = app.conversation
        entries = talk(50)
        entries[-1] = Entry.of_answer(answer("last", forgotten=26))
        await conversation.show(entries)
        assert below_horizon(conversation) == []
        conversation.scroll_to(y=0, animate=False, immediate=True)
        await settled(pilot)
        await conversation.show_earlier()
        assert below_horizon(conversation) == ["question 26"]
        await conversation.add(Entry("user", "pushes the line out"))
        assert below_horizon(conversation) == []
        entries[-1] = Entry.of_answer(answer("last", forgotten=50 - MOUNTED))
        await conversation.show(entries)
        assert below_horizon(conversation) == [f"question {50 - MOUNTED}"]


async def test_a_note_is_said_once_a_conversation() -> None:
    app = ConversationApp()
    async with app.run_test() as pilot:
        conversation = app.conversation
        await conversation.show(talk(2))
        await conversation.notes(["one", "two"])
        await conversation.notes(["two", "three"])
        await settled(pilot)
        assert [str(notice.render()) for notice in conversation.query(Notice)] == ["one", "two", "three"]
        await conversation.show(talk(2))
        await conversation.notes(["two"])
        assert [str(notice.render()) for notice in conversation.query(Notice)] == ["two"]
