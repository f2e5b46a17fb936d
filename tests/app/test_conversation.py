"""The conversation: what is mounted, where the view is, and where the message cursor is."""

import random

import pytest
from textual.pilot import Pilot
from textual.selection import SELECT_ALL
from textual.widget import Widget
from textual.widgets import Input

from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.conversation import Conversation
from app.widgets.horizon import Horizon
from app.widgets.notice import Notice
from app.widgets.passages import Passages
from app.widgets.prose import Prose
from app.widgets.user_message import HEAD, UserMessage
from app.widgets.welcome import Welcome
from tests.app.fakes_conversation import ConversationApp, settled, talk
from tests.app.fakes_shelf import until
from tests.fakes_client import answer

SMALL = (60, 12)


def uneven(count: int) -> list[Entry]:
    """Messages whose heights nobody guesses."""
    draw = random.Random(count)
    pieces = [
        "# Title\n\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        "word " * 40 + "\n\n",
        "```\nx\n```\n\n",
        "> quoted\n\n",
    ]
    texts = ["".join(draw.choices(pieces, k=draw.randint(1, 6))) for _ in range(count)]
    return [Entry("user" if number % 2 else "assistant", text) for number, text in enumerate(texts)]


def text_of(message: Widget) -> str:
    entry = message.entry  # type: ignore[attr-defined]
    return entry.text if entry else ""


def seen(conversation: Conversation) -> list[str]:
    """The mounted messages."""
    return [text_of(message) for message in conversation.messages]


def in_view(conversation: Conversation) -> list[Widget]:
    view = conversation.content_region
    return [message for message in conversation.messages if message.region.overlaps(view)]


async def scrolled(pilot: Pilot[None], conversation: Conversation, line: int) -> None:
    conversation.scroll_to(y=line, animate=False, immediate=True)
    await settled(pilot)


async def test_of_300_messages_only_those_near_the_view_are_mounted() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        conversation = app.conversation
        await conversation.show(talk(300))
        await settled(pilot)
        assert len(conversation.messages) < 20
        assert text_of(in_view(conversation)[-1]).startswith("answer 299")
        assert conversation.scroll_y == conversation.max_scroll_y
        assert conversation.max_scroll_y > 300 * 3
        for line, first in ((0, "question 0"), (conversation.max_scroll_y // 2, "")):
            await scrolled(pilot, conversation, line)
            assert len(conversation.messages) < 25
            assert first in seen(conversation)[0]
            assert "answer 299\n\n- a\n- b" not in seen(conversation)
            covered = sum(
                message.region.intersection(conversation.content_region).height for message in in_view(conversation)
            )
            assert covered >= conversation.content_size.height // 2


@pytest.mark.parametrize("step", [-3, -7])
async def test_scrolling_through_messages_never_mounted_moves_by_what_was_asked(step: int) -> None:
    """Heights that turn out other than guessed move nothing that the reader sees."""
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(uneven(40))
        await settled(pilot)
        for _ in range(8):
            before = {message: message.region.y for message in in_view(conversation)}
            line = round(conversation.scroll_y)
            conversation.scroll_relative(y=step, animate=False, immediate=True)
            await settled(pilot)
            moved = min(line, -step)
            for message in set(before) & set(in_view(conversation)):
                assert message.region.y == before[message] + moved
        assert conversation.scroll_y < conversation.max_scroll_y - 16


async def test_every_message_is_as_high_unmounted_as_it_was() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(uneven(9))
        await settled(pilot)
        for line in range(conversation.max_scroll_y, -1, -16):
            await scrolled(pilot, conversation, line)
        await scrolled(pilot, conversation, 0)
        height = conversation.virtual_size.height
        for line in range(0, height, 30):
            await scrolled(pilot, conversation, line)
            assert conversation.virtual_size.height == height


async def test_the_view_follows_the_answer() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
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
    text = "".join(f"line {number}\n\n" for number in range(120))
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.begin()
        await conversation.write(text[:400])
        await settled(pilot)
        await scrolled(pilot, conversation, 5)
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
        assert conversation.scroll_y == conversation.max_scroll_y


async def test_the_end_is_followed_again_when_the_reader_returns_to_it() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(talk(10))
        await conversation.begin()
        await conversation.write("text\n\n" * 20)
        await settled(pilot)
        await conversation.page_up()
        await settled(pilot)
        assert not conversation.following
        for _ in range(2):  # the second one has nowhere to go
            conversation.scroll_page_down(animate=False)
            await settled(pilot)
            assert conversation.following
        await conversation.write("more\n\n" * 20)
        await settled(pilot)
        assert conversation.scroll_y == conversation.max_scroll_y


async def test_a_resize_while_it_streams_loses_no_text_and_no_place() -> None:
    app = ConversationApp()
    pieces = [f"word{number} " * 7 + "\n\n- item\n\n" for number in range(30)]
    async with app.run_test(size=(120, 40)) as pilot:
        conversation = app.conversation
        await conversation.show(uneven(20))
        await conversation.begin()
        for at, size in ((10, (5, 3)), (20, (200, 60)), (30, (120, 40))):
            for piece in pieces[at - 10 : at]:
                await conversation.write(piece)
            await pilot.resize_terminal(*size)
            await settled(pilot)
            assert conversation.following
            assert conversation.scroll_y == conversation.max_scroll_y
        await conversation.finish(Entry.of_answer(answer("".join(pieces))))
        await settled(pilot)
        assert conversation.messages[-1].query_one(Passages).source == "".join(pieces)


async def test_a_resize_keeps_the_message_that_is_read() -> None:
    app = ConversationApp()
    async with app.run_test(size=(120, 30)) as pilot:
        conversation = app.conversation
        await conversation.show(uneven(40))
        await settled(pilot)
        await scrolled(pilot, conversation, conversation.max_scroll_y // 2)
        read = in_view(conversation)[0]
        for size in ((40, 20), (120, 30)):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            assert in_view(conversation)[0] is read
            assert not conversation.following


async def test_a_resize_keeps_the_place_within_one_long_paragraph() -> None:
    words = [f"{number:04}" for number in range(2000)]
    app = ConversationApp()
    async with app.run_test(size=(120, 30)) as pilot:
        conversation = app.conversation
        await conversation.show([Entry("assistant", " ".join(words))])
        await settled(pilot)
        await scrolled(pilot, conversation, 40)
        for size in ((50, 20), (120, 30)):
            before = first_number(app)
            await pilot.resize_terminal(*size)
            await settled(pilot)
            assert abs(first_number(app) - before) < 60


def first_number(app: ConversationApp) -> int:
    """The number at the top of the view."""
    line = app.screen._compositor.render_strips()[app.conversation.content_region.y]
    return int("".join(segment.text for segment in line).split()[0])


async def test_a_message_that_waited_does_not_take_the_reader_to_the_end() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(talk(20))
        await settled(pilot)
        await scrolled(pilot, conversation, 10)
        read = in_view(conversation)[0]
        line = read.region.y
        await conversation.add(Entry("user", "waited"), follow=False)
        await conversation.begin(follow=False)
        await conversation.write("text\n\n" * 9)
        await settled(pilot)
        assert read.region.y == line
        assert not conversation.following


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
        await settled(pilot)
        assert app.query_one(UserMessage).region.height < HEAD + 6


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


async def test_messages_that_are_shown_already_stay_the_widgets_they_are() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 60)) as pilot:
        conversation = app.conversation
        await conversation.show(talk(6))
        await settled(pilot)
        before = conversation.messages
        await conversation.show([*talk(6)[:4], Entry("user", "another"), Entry("assistant", "way")])
        await settled(pilot)
        assert conversation.messages[:4] == before[:4]
        assert seen(conversation)[4:] == ["another", "way"]


async def test_a_branch_that_changes_below_leaves_the_reader_where_they_are() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        entries = uneven(30)
        await conversation.show(entries)
        await settled(pilot)
        await scrolled(pilot, conversation, 40)
        read = in_view(conversation)[0]
        line = read.region.y
        await conversation.show(entries[:20], follow=False)
        await settled(pilot)
        assert read.region.y == line


def below_horizon(conversation: Conversation) -> list[str]:
    """The text of the message under each line that says what the model no longer sees."""
    lines = sorted(conversation.query(Horizon), key=lambda line: line.region.y)
    below = [[message for message in conversation.messages if message.region.y > line.region.y] for line in lines]
    return [text_of(messages[0]) for messages in below]


async def test_a_line_parts_what_the_model_no_longer_sees_from_what_it_sees() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 60)) as pilot:
        conversation = app.conversation

        async def is_above(*texts: str) -> None:
            await settled(pilot)
            assert below_horizon(conversation) == list(texts)

        await conversation.show(talk(6))
        await is_above()
        await conversation.begin()
        await conversation.finish(Entry.of_answer(answer("first to forget", forgotten=2)))
        await is_above("question 2")
        assert "no longer sees" in str(conversation.query_one(Horizon).render())
        await conversation.begin()
        await conversation.finish(Entry("assistant", "half", ending="broken off"))
        await is_above("question 2")
        await conversation.begin()
        await conversation.finish(Entry.of_answer(answer("forgot more", forgotten=4)))
        await is_above("question 4")
        await conversation.show(talk(2))
        await is_above()


async def test_a_note_is_said_once_a_conversation() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 40)) as pilot:
        conversation = app.conversation
        await conversation.show(talk(2))
        await conversation.notes(["one", "two"])
        await conversation.notes(["two", "three"])
        await settled(pilot)
        assert [str(notice.render()) for notice in conversation.query(Notice)] == ["one", "two", "three"]
        await conversation.show(talk(2))
        await conversation.notes(["two"])
        assert [str(notice.render()) for notice in conversation.query(Notice)] == ["two"]


# The message cursor


async def browsing(pilot: Pilot[None], app: ConversationApp, count: int = 40) -> Conversation:
    await app.conversation.show(talk(count))
    await settled(pilot)
    app.conversation.browse()
    await until(pilot, lambda: app.focused is not None and isinstance(app.focused, AnswerMessage | UserMessage))
    return app.conversation


def cursor(conversation: Conversation) -> str:
    """The text of the one message that is marked."""
    (marked,) = conversation.query(".-chosen")
    assert marked.region.overlaps(conversation.content_region)
    assert marked.has_focus
    return text_of(marked)


async def test_the_cursor_goes_from_message_to_message_and_the_view_with_it() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = await browsing(pilot, app)
        assert conversation.chosen == 39
        for key, index in (
            ("up", 38), ("home", 0), ("up", 0), ("down", 1), ("end", 39), ("down", 39),
        ):  # fmt: skip
            await pilot.press(key)
            await until(pilot, lambda: app.focused is not None and app.focused.has_class("-chosen"))
            await settled(pilot)
            assert conversation.chosen == index
            assert cursor(conversation).startswith(f"{('question', 'answer')[index % 2]} {index}")
        assert conversation.following
        assert app.chosen == [39, 38, 0, 1, 39]


async def test_one_tab_leaves_the_conversation_and_takes_the_cursor_along() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = await browsing(pilot, app)
        await pilot.press("tab")
        await settled(pilot)
        assert isinstance(app.focused, Input)
        assert conversation.chosen is None
        assert not conversation.query(".-chosen")
        await pilot.press("shift+tab")
        await until(pilot, lambda: conversation.chosen == 39)
        await pilot.press("shift+tab")
        await settled(pilot)
        assert isinstance(app.focused, Input)


async def test_a_found_message_is_revealed_and_the_focus_stays() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(talk(100))
        await settled(pilot)
        for index in (10, 60, 0):
            conversation.reveal(index)
            await settled(pilot)
            (marked,) = conversation.query(".-chosen")
            assert conversation.index_of(marked) == index
            assert marked.region.y == conversation.content_region.y
            assert isinstance(app.focused, Input)
            assert not conversation.following
        conversation.browse()
        await settled(pilot)
        assert app.focused is marked


async def test_a_message_with_the_selection_stays_mounted() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(talk(60))
        await settled(pilot)
        last = conversation.messages[-1]
        app.screen.selections = {last.query_one(Prose).children[0]: SELECT_ALL}
        await scrolled(pilot, conversation, 0)
        assert conversation.messages[-1] is last
        app.screen.clear_selection()
        await scrolled(pilot, conversation, 30)
        assert last not in conversation.messages


async def test_answers_mounted_later_are_coloured_as_those_in_view() -> None:
    app = ConversationApp()
    async with app.run_test(size=SMALL) as pilot:
        conversation = app.conversation
        await conversation.show(talk(60))
        conversation.coloured = True
        await scrolled(pilot, conversation, 0)
        answers = [message for message in conversation.messages if isinstance(message, AnswerMessage)]
        assert answers
        assert all(message.coloured for message in answers)
