"""Long answers: the same text whatever the pieces it comes in, and no dearer the longer they are."""

import random

import pytest
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from app.transcript import Entry
from app.widgets import prose
from app.widgets.conversation import Conversation
from app.widgets.passages import Passage, Passages
from app.widgets.pieces import CODE_LINES
from app.widgets.prose import Prose, ProseFence
from app.widgets.prose_list import Hanging
from app.widgets.row import Row
from tests.app.fakes_conversation import ConversationApp, settled
from tests.app.fakes_shelf import until
from tests.fakes_client import answer

BLOCKS = [
    "# Title\n\n",
    "- a\n- b\n\n- c\n\nend\n\n",
    "```python\nx = 1\n\ny = 2\n```\n\n",
    "text\nmore\n\n",
    "| a |\n|---|\n| 1 |\n\n",
    "1. x\n\n   y\n2. z\n\nend\n\n",
]

BLOCKS_ONCE = "".join(BLOCKS)


class Host(App[None]):
    def __init__(self, passages: Passages) -> None:
        super().__init__()
        self.passages = passages

    def compose(self) -> ComposeResult:
        yield self.passages


def long_text(count: int) -> str:
    draw = random.Random(count)
    return "".join(draw.choice(BLOCKS) for _ in range(count))


def drawn(shown: Prose) -> list[tuple[str, str]]:
    """Every widget of a text, and what it says."""
    return [(type(node).__name__, said(node)) for node in shown.walk_children(Static)]


def said(node: Static) -> str:
    if isinstance(node, ProseFence):
        return node.code
    visual = node.render()
    return visual.laid_out(40).plain if isinstance(visual, Hanging) else str(visual)


@pytest.mark.parametrize("seed", range(2))
async def test_any_pieces_give_the_passages_of_the_whole(seed: int) -> None:
    text, draw = long_text(45), random.Random(seed)
    app = Host(Passages(streaming=True))
    async with app.run_test() as pilot:
        at = 0
        while at < len(text):
            size = draw.randint(1, 200)
            await app.passages.write(text[at : at + size])
            at += size
            if draw.random() < 0.5:
                await pilot.pause()
        await app.passages.finish(text)
        await settled(pilot)
        assert app.passages.source == text
        shown = [child for child in app.passages.children if isinstance(child, Prose)]
        assert len(shown) > 2
        for child in shown:
            whole = Prose(child.source)
            await app.mount(whole)
            assert drawn(child) == drawn(whole)
            await whole.remove()


async def test_what_is_shown_at_the_end_is_the_text_that_it_ended_with() -> None:
    app = Host(Passages(streaming=True))
    streamed = long_text(60)
    final = streamed[: len(streamed) // 2] + "\n\nAnother end."
    async with app.run_test() as pilot:
        await app.passages.write(streamed)
        await app.passages.finish(final)
        await settled(pilot)
        assert app.passages.source == final


async def test_an_answer_that_goes_on_keeps_its_beginning() -> None:
    app = Host(Passages("one\ntwo", streaming=True))
    async with app.run_test() as pilot:
        await app.passages.write("\nthree")
        await settled(pilot)
        (paragraph,) = app.query_one(Prose).children
        assert str(paragraph.render()) == "one\ntwo\nthree"


async def parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Characters parsed while a text is shown piece by piece, and at its end."""
    count, kind = 0, type(prose.parser())
    parse = kind.parse

    def counted(self: object, src: str, env: object = None) -> object:
        nonlocal count
        count += len(src)
        return parse(self, src, env)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "parse", counted)
    app = Host(Passages(streaming=True))
    async with app.run_test():
        for at in range(0, len(text), 160):
            await app.passages._append(text[at : at + 160])
        await app.passages.finish(text)
    monkeypatch.undo()
    return count


async def test_an_answer_of_twice_the_length_costs_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await parsed(BLOCKS_ONCE * 40, monkeypatch) < 2.1 * await parsed(BLOCKS_ONCE * 20, monkeypatch)


async def test_while_a_long_answer_is_written_what_has_gone_by_is_unmounted() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.conversation.begin()
        for _ in range(16):
            await app.conversation.write(BLOCKS_ONCE)
            await pilot.pause()
        passages = app.query_one(Passages)
        await until(pilot, lambda: passages.source == BLOCKS_ONCE * 16)
        await until(pilot, lambda: sum(row.widget is not None for row in passages.rows) <= 4)
        assert len(passages.rows) > 6
        assert passages.rows[-1].widget is not None
        assert app.conversation.following


async def test_of_a_long_answer_only_the_passages_near_the_view_are_mounted() -> None:
    app = ConversationApp()
    text = long_text(200)
    async with app.run_test(size=(80, 24)) as pilot:
        conversation: Conversation = app.conversation
        await conversation.show([Entry("user", "go"), Entry.of_answer(answer(text))])
        await settled(pilot)
        passages = app.query_one(Passages)
        assert len(passages.rows) > 6
        for line in (conversation.max_scroll_y, conversation.max_scroll_y // 2, 0):
            conversation.scroll_to(y=line, animate=False, immediate=True)
            await settled(pilot)
            mounted = [row for row in passages.rows if row.widget is not None]
            assert 1 <= len(mounted) <= 6
            assert any(shows(row, conversation) for row in mounted)


async def test_cut_or_not_a_text_takes_the_same_lines() -> None:
    app = ConversationApp()
    text = "".join(f"# Title\n\n> quoted\n\n{block}" for block in BLOCKS) * 3
    async with app.run_test(size=(80, 500)) as pilot:
        await app.conversation.show([Entry.of_answer(answer(text))])
        await settled(pilot)
        passages = app.query_one(Passages)
        assert len(passages.rows) > 3
        whole = Prose(text)
        assert isinstance(passages.parent, Widget)
        await passages.parent.mount(whole)
        await settled(pilot)
        assert passages.region.height == whole.region.height


def shows(row: Row, conversation: Conversation) -> bool:
    return isinstance(row, Passage) and row.prose is not None and row.prose.region.overlaps(conversation.content_region)


async def test_a_reader_within_a_long_answer_stays_there_while_its_passages_come_and_go() -> None:
    app = ConversationApp()
    async with app.run_test(size=(80, 24)) as pilot:
        conversation = app.conversation
        await conversation.show([Entry.of_answer(answer(long_text(150)))])
        await settled(pilot)
        for _ in range(8):
            blocks = {block: block.region.y for block in app.query("Prose > MarkdownBlock") if block.region}
            kept = {block: y for block, y in blocks.items() if block.region.overlaps(conversation.content_region)}
            conversation.scroll_relative(y=-9, animate=False, immediate=True)
            await settled(pilot)
            for block, line in kept.items():
                if block.is_attached and block.region.overlaps(conversation.content_region):
                    assert block.region.y == line + 9


CODE = "```python\n" + "".join(f"value_{number} = {number}\n" for number in range(3 * CODE_LINES - 9)) + "```\n\nend"
LIST = "".join(f"{number}. item\n" for number in range(1, 3 * CODE_LINES)) + "\nend"


@pytest.mark.parametrize("text", [CODE, LIST], ids=["code", "list"])
async def test_a_block_without_end_is_shown_in_parts_without_a_gap(text: str) -> None:
    app = Host(Passages(streaming=True))
    async with app.run_test(size=(80, 24)) as pilot:
        for at in range(0, len(text) - 90, 900):
            await app.passages.write(text[at : min(at + 900, len(text) - 90)])
            await pilot.pause()
        await until(pilot, lambda: len(app.passages.rows) >= 3)
        await app.passages.write(text[-90:])
        await app.passages.finish(text)
        await settled(pilot)
        assert app.passages.source == text
        rows = [row for row in app.passages.rows if isinstance(row, Passage)]
        assert len(rows) >= 3
        assert all(len(row.source) < len(text) / 2 for row in rows)
        regions = [row.prose.region for row in rows if row.prose is not None]
        assert [region.y for region in regions[1:]] == [
            region.bottom - row.lap for row, region in zip(rows, regions[:-1], strict=False)
        ]
        laps = [row.lap for row in rows]
        assert laps == sorted(laps, reverse=True)
        assert laps[:2] == [1, 1]
        assert laps[-1] == 0


async def test_of_code_shown_in_parts_all_is_copied() -> None:
    app = Host(Passages(CODE + "\n\n```\nx\n```"))
    async with app.run_test() as pilot:
        await settled(pilot)
        *parts, short = app.query(ProseFence)
        copied = []
        for fence in (*parts, short):
            wanted = ProseFence.CopyWanted(fence.code)
            app.passages.on_prose_fence_copy_wanted(wanted)
            copied.append(wanted.code)
        assert len(parts) == 3
        assert copied == [CODE.split("\n", 1)[1].split("```")[0].rstrip()] * 3 + ["x"]
