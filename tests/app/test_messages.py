"""Questions and answers: thoughts, versions, actions by mouse and keys, copies, files, and no text that is obeyed."""

import pytest
from textual.pilot import Pilot

from app.options import Options
from app.settings import Thoughts
from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.chat_message import ChatMessage
from app.widgets.copy_mark import CopyMark
from app.widgets.foot import Foot
from app.widgets.passages import Passages
from app.widgets.prose import ProseFence
from app.widgets.thought import Thought
from app.widgets.user_message import HEAD, UserMessage
from engine.stats import Verdict
from tests.app.fakes_shelf import until
from tests.app.fakes_trace import MessageApp, token
from tests.fakes_client import answer

MARKUP = ["[/]", "[bold", "[0] x", "[b + ... [/#888888]", "[@click=app.quit]press[/]", "\\[x] [$primary]", "[link=x]"]
THOUGHT = "<think>\nFirst, *this*.\n</think>\n\nSo **that**."


def entry(text: str, **fields: object) -> Entry:
    return Entry("assistant", text, answer(text), **{"id": 7, **fields})  # type: ignore[arg-type]


def sources(message: AnswerMessage) -> list[str]:
    return [prose.source for prose in message.query(Passages)]


def heads(message: AnswerMessage) -> list[str]:
    return [str(head.render()) for head in message.query(".head")]


def place(foot: Foot, word: str) -> tuple[int, int]:
    """Where in the line below a message a word stands."""
    return foot.gutter.left + str(foot.render()).index(word), 0


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(4):
        await pilot.pause()


# Thoughts


async def test_a_thought_is_folded_and_says_how_long_it_took() -> None:
    message = AnswerMessage(entry(THOUGHT))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await settled(pilot)
        assert sources(message) == ["So **that**."]
        tokens = round(len(THOUGHT) * len("\nFirst, *this*.\n") / len(THOUGHT))
        assert heads(message) == [f"▸ thought · {tokens} tokens · about {1000 * tokens / 54.2:.0f} ms"]
        await pilot.click(".head")
        await settled(pilot)
        assert sources(message) == ["\nFirst, *this*.\n", "So **that**."]
        assert heads(message)[0].startswith("▾ thought")
        message.chosen = True
        message.focus()
        await pilot.press("t")
        await settled(pilot)
        assert sources(message) == ["So **that**."]


async def test_the_tokens_of_a_thought_are_counted_where_they_are_known() -> None:
    trace = tuple(token(text) for text in ("<think>", "\n", "First, ", "*this*.", "\n", "</think>", "\n\nSo **that**."))
    message = AnswerMessage(entry(THOUGHT, trace=trace))
    async with MessageApp(message).run_test() as pilot:
        await settled(pilot)
        assert heads(message)[0].startswith("▸ thought · 4 tokens")


@pytest.mark.parametrize("thoughts", ["folded", "live", "open"])
async def test_a_thought_streams_and_folds_when_it_ends_unless_it_is_wanted_open(thoughts: Thoughts) -> None:
    message = AnswerMessage(thoughts=thoughts)
    rest = ["\nFirst, *this*.\n", "So **that**."] if thoughts == "open" else ["So **that**."]
    app = MessageApp(message)
    async with app.run_test() as pilot:
        for letter in THOUGHT[:24]:
            await message.write(letter, [token(letter)])
        await settled(pilot)
        assert heads(message)[0].startswith(("▸" if thoughts == "folded" else "▾") + " thinking …")
        assert sources(message) == ([] if thoughts == "folded" else ["\nFirst, *this*.\n"])
        for letter in THOUGHT[24:]:
            await message.write(letter)
        await until(pilot, lambda: sources(message) == rest)
        await message.finish(entry(THOUGHT))
        await settled(pilot)
        assert sources(message) == rest
        assert heads(message)[0].startswith(("▾" if thoughts == "open" else "▸") + " thought · ")


async def test_thoughts_are_folded_and_opened_at_once_but_for_those_that_the_reader_touched() -> None:
    message, touched, begun = AnswerMessage(entry(THOUGHT)), AnswerMessage(entry(THOUGHT)), AnswerMessage()
    app = MessageApp(message, touched, begun)
    async with app.run_test() as pilot:
        await begun.write("<think>hm")
        await settled(pilot)
        touched.action_thoughts()
        for thoughts, signs in (("open", "▾▾▾"), ("live", "▸▾▾"), ("folded", "▸▾▸")):
            for one in (message, touched, begun):
                one.show_thoughts(thoughts)
            await settled(pilot)
            assert "".join(heads(one)[0][0] for one in (message, touched, begun)) == signs


async def test_a_thought_that_the_prompt_opened_is_one_from_its_first_letter() -> None:
    text = "First, *this*.\n</think>\n\nSo **that**."
    streamed, whole = AnswerMessage(), AnswerMessage(entry(text, opening="<think>"))
    app = MessageApp(streamed, whole)
    async with app.run_test() as pilot:
        for at, letter in enumerate(text):
            await streamed.write(letter, [token(letter)], "<think>")
            await settled(pilot)
            assert at >= text.index("So") or sources(streamed) == []
            assert heads(streamed)[0].startswith("▸ th")
        await streamed.finish(entry(text, opening="<think>"))
        await settled(pilot)
        assert sources(streamed) == sources(whole) == ["So **that**."]
        assert heads(streamed)[0].startswith("▸ thought · 15 tokens")
        assert streamed.copied() == whole.copied() == "So **that**."


async def test_a_half_thought_that_goes_on_stays_a_thought() -> None:
    message = AnswerMessage(entry("First", opening="<think>", ending="broken off"))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await settled(pilot)
        assert (heads(message)[0][0], sources(message)) == ("▾", ["First"])
        await message.write(", this.")
        await settled(pilot)
        assert heads(message)[0].startswith("▸ thinking …")
        await message.write("</think>That.")
        await until(pilot, lambda: sources(message) == ["That."])
        await message.finish(entry("First, this.</think>That.", opening="<think>"))
        await settled(pilot)
        assert sources(message) == ["That."]


async def test_a_thought_that_the_reader_opened_stays_open() -> None:
    message = AnswerMessage()
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await message.write(THOUGHT[:15])
        await settled(pilot)
        await pilot.click(".head")
        await settled(pilot)
        await message.write(THOUGHT[15:])
        await message.finish(entry(THOUGHT))
        await until(pilot, lambda: sources(message) == ["\nFirst, *this*.\n", "So **that**."])
        assert heads(message)[0].startswith("▾")


async def test_an_answer_that_is_all_thought_shows_it() -> None:
    half = "<think>\nFirst"
    message, streamed = AnswerMessage(entry(half, ending="cut off")), AnswerMessage()
    app = MessageApp(message, streamed)
    async with app.run_test() as pilot:
        await streamed.write(half)
        await streamed.finish(entry(half, ending="cut off"))
        await until(pilot, lambda: sources(message) == sources(streamed) == ["\nFirst"])
        assert heads(message)[0].startswith("▾ thought")


@pytest.mark.parametrize(
    "text",
    [
        THOUGHT,
        "No thoughts, `<think>` in code.\n\n```\n<think>\n</think>\n```\n\ndone",
        "<think>a<think>b</think>c</think>d",
        "hm\n</think>\n\nYes.",
        "one\n<think>\ntwo\n</think>\n\nthree",
        "<think>\n</think>\n\nshort",
    ],
)
async def test_streamed_by_letters_it_ends_as_it_is_at_once(text: str) -> None:
    streamed, whole = AnswerMessage(), AnswerMessage(entry(text))
    app = MessageApp(streamed, whole)
    async with app.run_test() as pilot:
        for letter in text:
            await streamed.write(letter)
        await streamed.finish(entry(text))
        await settled(pilot)
        assert sources(streamed) == sources(whole)
        assert heads(streamed) == heads(whole)


async def test_no_piece_of_a_tag_is_ever_shown() -> None:
    message, text = AnswerMessage(), "<think>a</think>b < c"
    app = MessageApp(message)
    async with app.run_test() as pilot:
        for letter in text:
            await message.write(letter)
            await settled(pilot)
            assert "".join(sources(message)) in ("", "b", "b ", "b <", "b < ", "b < c")


async def test_an_answer_that_is_gone_on_with_grows() -> None:
    message = AnswerMessage(entry("```py\nx = 1\n", ending="stopped"))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await settled(pilot)
        for letter in "y = 2\n```\nDone.":
            await message.write(letter)
        await until(pilot, lambda: sources(message) == ["```py\nx = 1\ny = 2\n```\nDone."])
        await settled(pilot)
        assert message.query_one(ProseFence).code == "x = 1\ny = 2"
        whole = entry("```py\nx = 1\ny = 2\n```\nDone.")
        await message.finish(whole)
        assert message.entry is whole
        message.chosen = True
        assert "continue" not in str(message.foot.render())
        assert not message.has_class("-writing")


# Versions and actions


async def test_versions_are_shown_and_asked_for() -> None:
    message = AnswerMessage(entry("b", version=2, versions=3))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await settled(pilot)
        assert str(message.foot.render()) == " < 2/3 > "
        for word in "<>":
            await pilot.click(message.foot, offset=place(message.foot, word))
        message.chosen = True
        message.focus()
        await pilot.press("less_than_sign", "greater_than_sign")
        await settled(pilot)
        steps = [event.step for event in app.wanted if isinstance(event, ChatMessage.VersionWanted)]
        assert steps == [-1, 1, -1, 1]
        assert {event.entry_id for event in app.wanted} == {7}


async def test_there_is_no_version_beyond_the_first_and_the_last() -> None:
    first, only = AnswerMessage(entry("a", version=1, versions=2)), AnswerMessage(entry("a"))
    app = MessageApp(first, only)
    async with app.run_test() as pilot:
        await settled(pilot)
        assert str(only.foot.render()) == ""
        await pilot.click(first.foot, offset=place(first.foot, "<"))
        first.action_version(-1)
        only.action_version(1)
        await settled(pilot)
        assert app.wanted == []


async def test_actions_appear_under_the_mouse_and_move_nothing() -> None:
    question, reply = UserMessage(Entry("user", "q", id=3)), AnswerMessage(entry("a", ending="cut off"))
    app = MessageApp(question, reply)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        heights = [question.size.height, reply.size.height]
        assert str(reply.foot.render()) == ""
        await pilot.hover(Passages)
        await settled(pilot)
        words = ["edit", "again", "warmer", "continue", "branch", "copy", "same seed"]
        assert [word.strip() for word in str(reply.foot.render()).split("   ")] == words
        assert str(question.foot.render()) == ""
        await pilot.hover(".said")
        await settled(pilot)
        assert str(question.foot.render()).split() == ["edit", "branch", "copy"]
        assert str(reply.foot.render()) == ""
        assert [question.size.height, reply.size.height] == heights


def once(event: ChatMessage.Wanted) -> Options | None:
    return event.once if isinstance(event, ChatMessage.AgainWanted) else None


async def test_another_answer_is_wanted_as_it_was_drawn_or_bolder() -> None:
    drawn, kept = AnswerMessage(entry("a")), AnswerMessage(Entry("assistant", "a", ending="broken off"))
    app = MessageApp(drawn, kept)
    async with app.run_test() as pilot:
        for message in (drawn, kept):
            message.chosen = True
            message.focus()
            await pilot.press("r", "w", "s")
            await settled(pilot)
            message.chosen = False
        wanted = [None, Options(temperature=0.3), Options(seed=7, rule="rejection"), None]
        assert [once(event) for event in app.wanted] == wanted
        assert "warmer" not in [word for word, _ in kept.foot.offers]


async def test_each_action_is_asked_for_by_mouse_and_by_key() -> None:
    question, reply = UserMessage(Entry("user", "q", id=3)), AnswerMessage(entry("a", ending="stopped"))
    app = MessageApp(question, reply)
    async with app.run_test(size=(80, 24)) as pilot:
        for message, keys in ((question, "ebc"), (reply, "erwgbcs")):
            message.chosen = True
            message.focus()
            await settled(pilot)
            for word, _ in message.foot.offers:
                await pilot.click(message.foot, offset=place(message.foot, word))
            await settled(pilot)
            by_mouse, app.wanted = app.wanted, []
            await pilot.press(*keys)
            await settled(pilot)
            by_key, app.wanted = app.wanted, []
            assert [(type(event), once(event)) for event in by_mouse] == [
                (type(event), once(event)) for event in by_key
            ]
            assert all(event.message is message for event in by_key)
            assert len(by_key) == len(keys)
            message.chosen = False


async def test_keys_do_nothing_where_they_make_no_sense() -> None:
    whole, writing = AnswerMessage(entry("a")), AnswerMessage()
    app = MessageApp(whole, writing)
    async with app.run_test() as pilot:
        for message in (whole, writing):
            message.chosen = True
            message.focus()
            await pilot.press("g", "y", "t", "comma")
            message.chosen = False
        assert app.wanted == []
        writing.chosen = True
        writing.focus()
        await pilot.press("e", "r", "b", "c")
        assert app.wanted == []


async def test_a_message_takes_the_focus_only_while_it_is_chosen() -> None:
    message = AnswerMessage(entry("a"))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await pilot.click(Passages)
        assert not message.has_focus
        assert not message.can_focus
        message.chosen = True
        assert message.can_focus
        assert message.has_class("-chosen")
        message.chosen = False
        assert not message.can_focus


def test_every_key_has_an_id_a_description_and_a_tooltip() -> None:
    own = [*ChatMessage.BINDINGS, *AnswerMessage.BINDINGS]
    assert all(binding.id and binding.description and binding.tooltip for binding in own)  # type: ignore[union-attr]
    keys = [key for binding in own for key in binding.key.split(",")]  # type: ignore[union-attr]
    assert len(set(keys)) == len(keys)


# Copies


async def test_a_block_of_code_is_copied_by_its_corner_and_by_key() -> None:
    text = "<think>\n```\nno\n```\n</think>\n\n```py\nx = 1\n\ty\n```\n\n- in a list\n  ```\n  z\n  ```\n"
    message = AnswerMessage(entry(text))
    app = MessageApp(message)
    async with app.run_test(size=(80, 30)) as pilot:
        await settled(pilot)
        mark = message.query(CopyMark).first()
        assert not mark.visible
        await pilot.hover("#code-content")
        await settled(pilot)
        assert mark.visible
        await pilot.click(mark)
        message.chosen = True
        message.focus()
        await pilot.press("y", "y", "y")
        await settled(pilot)
        copied = [event.text for event in app.wanted if isinstance(event, ChatMessage.CopyWanted)]
        assert copied == ["x = 1\n\ty", "x = 1\n\ty", "z", "x = 1\n\ty"]


async def test_a_copy_of_an_answer_leaves_out_its_thoughts_and_one_of_a_question_nothing() -> None:
    question, reply = UserMessage(Entry("user", "a\nb")), AnswerMessage(entry(THOUGHT))
    app = MessageApp(question, reply)
    async with app.run_test():
        question.action_copy()
        reply.action_copy()
        await app.workers.wait_for_complete()
    assert [question.copied(), reply.copied()] == ["a\nb", "So **that**."]


async def test_versions_and_actions_are_not_part_of_a_selection() -> None:
    message = UserMessage(Entry("user", "words", version=1, versions=2))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        message.chosen = True
        await pilot.pause()
        message.text_select_all()
        assert app.screen.get_selected_text() == "words"


# What the user wrote


async def test_files_are_chips_and_their_text_is_not_shown() -> None:
    text = "notes [/].txt:\n```\nall of it\n```\n\nWhat is in it?"
    message = UserMessage(Entry("user", text, attachments=("notes [/].txt",)))
    app = MessageApp(message)
    async with app.run_test() as pilot:
        await settled(pilot)
        assert str(message.said.render()) == "What is in it?"
        assert str(message.query_one(".chips").render()) == " notes [/].txt "
        assert message.copied() == text


def test_a_long_message_shows_its_head() -> None:
    message = UserMessage(Entry("user", "\n".join(str(number) for number in range(5000))))
    lines = str(message.said.render()).split("\n")
    assert lines[:2] == ["0", "1"]
    assert lines[HEAD:] == [f"… and {5000 - HEAD:,} more lines"]


# Text that is not obeyed


async def test_markup_is_text_in_every_place_of_a_message() -> None:
    """Question, file, thought, prose, code and its language, list, table, near tie; streamed, stored, clicked on."""
    lines = "\n\n".join(MARKUP)
    rest = "".join(f"```{text}\n{text}\n```\n\n- {text}\n\n| {text} |\n|---|\n| {text} |\n\n" for text in MARKUP)
    body = f"<think>\n{lines}\n</think>\n\n{lines}\n\n{rest}"
    tied = answer(body, ids=[1], verdict=Verdict(kind="near_ties", threshold=0.4, near_ties=[0]))
    question = UserMessage(Entry("user", lines, attachments=tuple(MARKUP), version=1, versions=2))
    reply = AnswerMessage(Entry("assistant", body, tied, ending="stopped", trace=(token(MARKUP[0]),)))
    streamed = AnswerMessage()
    app = MessageApp(question, reply, streamed)
    async with app.run_test(size=(120, 120)) as pilot:
        for at in range(0, len(body), 11):
            await streamed.write(body[at : at + 11])
        await pilot.click(reply.query_one(Thought).query_one(".head"))
        await settled(pilot)
        assert str(question.said.render()) == lines
        chips = str(question.query_one(".chips").render())
        assert all(f" {text} " in chips for text in MARKUP)
        assert sources(reply)[0].strip() == lines
        assert sources(streamed)[-1].startswith(lines)
        assert "near tie at token 1 ‘[/]’" in str(reply.query_one(".receipt").render())
        for kind in (".said", ".chips", "MarkdownParagraph", "ProseFence", "FlatBullets", "MarkdownTableCellContents"):
            await pilot.click(app.query(kind).first(), offset=(3, 0))
        assert app.is_running
        assert app.wanted == []


async def test_right_to_left_cjk_and_emoji_keep_their_cells() -> None:
    text = "שלום עולם\n\n" + "汉字" * 40 + "\n\n👨‍👩‍👧 🇩🇪 👍🏽\n\n| 汉 | b |\n|---|---|\n| שלום | 👍🏽 |\n"
    question, reply = UserMessage(Entry("user", text)), AnswerMessage(entry(text))
    app = MessageApp(question, reply)
    async with app.run_test(size=(60, 40)) as pilot:
        await settled(pilot)
        strips = app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {60}
        drawn = "\n".join(strip.text for strip in strips)
        for piece in ("שלום עולם", "👨‍👩‍👧 🇩🇪 👍🏽", "汉字汉字"):
            assert drawn.count(piece) >= 2
