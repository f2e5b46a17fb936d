"""The sidebar: days, search, renaming, pins, deleting and undoing, files; in every width, with any title."""

import re
import threading
from datetime import UTC, timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot

from app.errors import StoreError
from app.screens.path_dialog import PathDialog
from app.store.records import Hit, Summary
from app.store.store import Store
from app.transcript import Entry
from app.widgets.field import Field
from app.widgets.key_button import KeyButton
from app.widgets.rename import Rename
from app.widgets.sidebar import Sidebar
from app.widgets.sidebar_rows import UNTITLED, HitRow, when
from app.widgets.undo import Undo
from tests.app.fakes_shelf import until
from tests.app.fakes_sidebar import NOW, Host, Told, screen_lines
from tests.app.test_literal import CONTROL, MARKUP

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def told() -> Told:
    return Told()


async def ready(pilot: Pilot[None], app: Host) -> None:
    """All conversations are listed."""
    await until(pilot, lambda: app.bar._summaries)


async def listed(pilot: Pilot[None], app: Host, *ids: int) -> None:
    """The list holds these conversations in this order."""
    await until(pilot, lambda: [key for key in app.keys if key] == [f"conversation {id}" for id in ids])


# Days


@pytest.mark.parametrize(
    ("ago", "pinned", "name"),
    [
        (timedelta(), False, "Today"), (-DAY, False, "Today"), (HOUR, False, "Yesterday"), (DAY, False, "Yesterday"),
        (DAY + HOUR, False, "This week"), (6 * DAY, False, "This week"), (7 * DAY, False, "November"),
        (31 * DAY, False, "October"), (340 * DAY, False, "December 2025"), (340 * DAY, True, "Pinned"),
    ],
)  # fmt: skip
def test_a_conversation_stands_under_its_day_where_the_user_is(ago: timedelta, pinned: bool, name: str) -> None:
    assert when(Summary(1, "x", (NOW - ago).astimezone(UTC), pinned, 2), NOW) == name


async def test_conversations_are_grouped_and_the_open_one_is_marked(told: Told) -> None:
    old, new, mine = told.said("Old one", 40 * DAY), told.said("New one"), told.said("Pinned one", 9 * DAY)
    told.store.pin(mine, True)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        app.bar.opened = old
        await pilot.pause()
        assert app.drawn() == [
            " Pinned", " Pinned one", "", " Today", " New one", "", " October", "▌Old one",
        ]  # fmt: skip
        assert app.bar.at is not None
        assert app.bar.at.id == old
        app.bar.opened = new
        await pilot.pause()
        assert [line for line in app.drawn() if line.startswith("▌")] == ["▌New one"]


async def test_nothing_said_yet(told: Told) -> None:
    told.store.create()
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        assert app.drawn() == [" Today", f" {UNTITLED}"]
    empty = Host(Store.open(None))
    async with empty.run_test(size=(120, 30)) as pilot:
        await until(pilot, empty.drawn)
        assert empty.drawn() == [" Nothing said yet"]
        await pilot.press("r", "p", "d", "u", "e", "enter")
        assert empty.said == []


@pytest.mark.parametrize("way", ["enter", "click"])
async def test_a_conversation_is_chosen_by_key_and_mouse(told: Told, way: str) -> None:
    first, second = told.said("First", HOUR * 2), told.said("Second", HOUR)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await listed(pilot, app, second, first)
        if way == "enter":
            await pilot.press("down", "enter")
        else:
            await pilot.click(app.bar.rows, offset=(4, 2))
        await until(pilot, lambda: app.said)
        assert app.said == [Sidebar.ConversationChosen(first)]


# Search


async def test_a_button_that_can_do_nothing_is_grey_and_does_nothing(told: Told) -> None:
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, app.drawn)
        for button in app.bar.query(KeyButton):
            assert button.has_class("-off") == (str(button.render()) not in {"New", "Import"})
        await pilot.click(app.bar.query(KeyButton)[4])
        told.said("One")
        app.bar.reload()
        await until(pilot, lambda: app.bar._summaries)
        await until(
            pilot, lambda: [str(one.render()) for one in app.bar.query(KeyButton) if one.has_class("-off")] == ["Undo"]
        )
        assert told.store.summaries()[0].title == "One"


def write(app: Host, text: str) -> None:
    """Put a text in place of what stands in the field that has the focus."""
    assert isinstance(app.focused, Field)
    app.focused.value = text


async def search(pilot: Pilot[None], app: Host, text: str) -> None:
    await pilot.press("slash")
    write(app, text)
    await until(pilot, lambda: app.bar._searched == text)


async def test_hits_are_shown_with_what_matches_marked_and_chosen_by_message(told: Told) -> None:
    one = told.said("About riders", DAY, ["A paceline is a row of riders.", "Nothing here."])
    told.said("Other things", HOUR)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await search(pilot, app, "rid")
        assert app.drawn()[0] == " 3 hits in 1 chat"
        assert app.drawn()[1] == " About riders"
        rows = app.bar.rows.rows
        for row in rows[1:]:
            marks = [(line.plain[span.start : span.end], span.style) for line in row.draw(30) for span in line.spans]
            assert ("riders", "bold underline $accent") in marks
        hit = next(row for row in rows if isinstance(row, HitRow) and "paceline" in row.hit.excerpt)
        await pilot.press("down", *["down"] * (rows.index(hit) - 1), "enter")
        await until(pilot, lambda: app.said)
        assert app.said == [Sidebar.HitChosen(one, hit.hit.message)]
        assert told.store.get(one).path[1].id == hit.hit.message


async def test_enter_in_the_search_takes_the_first_hit_and_escape_ends_it(told: Told) -> None:
    first, second = told.said("Needle", DAY), told.said("Hay", HOUR)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await listed(pilot, app, second, first)
        await search(pilot, app, "needle")
        await pilot.press("enter")
        await until(pilot, lambda: app.said)
        assert app.said == [Sidebar.HitChosen(first, None)]
        await pilot.press("escape")
        await listed(pilot, app, second, first)
        assert app.field.value == ""
        await pilot.press("escape")
        await until(pilot, lambda: Sidebar.Left() in app.said)


async def test_enter_before_the_search_is_done_takes_no_old_row(told: Told) -> None:
    told.said("Hay", HOUR)
    told.said("Needle", DAY)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        app.bar._settle_s = 3600.0
        await pilot.press("slash")
        write(app, "needle")
        await pilot.press("enter")
        await until(pilot, lambda: app.bar._searched == "needle")
        assert app.said == []
        assert app.drawn()[:2] == [" 2 hits in 1 chat", " Needle"]


async def test_nothing_found_is_said(told: Told) -> None:
    told.said("Hay")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await search(pilot, app, "xyzzy")
        assert app.drawn() == [" Nothing found"]
        await pilot.press("enter")
        assert app.said == []


class Slow:
    """A store whose first search waits for the second to end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.second = threading.Event()
        self.threads: set[int] = set()
        self.ended: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def search(self, text: str, limit: int) -> list[Hit]:
        self.threads.add(threading.get_ident())
        if text == "h":
            assert self.second.wait(20)
        hits = self._store.search(text, limit)
        self.ended.append(text)
        return hits


async def test_a_search_that_was_overtaken_never_shows_and_none_blocks_the_window(told: Told) -> None:
    told.said("Hay", HOUR)
    told.said("Hotel", DAY)
    slow = Slow(told.store)
    app = Host(slow)  # type: ignore[arg-type]
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await pilot.press("slash", "h")
        await until(pilot, lambda: slow.threads)
        await pilot.press("o")
        await until(pilot, lambda: app.bar._searched == "ho")
        slow.second.set()
        await until(pilot, lambda: slow.ended == ["ho", "h"])
        for _ in range(5):
            await pilot.pause()
        assert app.bar._searched == "ho"
        assert next(line for line in app.drawn() if "H" in line) == " Hotel"
        assert "Hay" not in "".join(app.drawn())
    assert threading.get_ident() not in slow.threads


async def test_a_search_that_was_given_up_never_shows(told: Told) -> None:
    id = told.said("Hay")
    slow = Slow(told.store)
    app = Host(slow)  # type: ignore[arg-type]
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await pilot.press("slash", "h")
        await until(pilot, lambda: slow.threads)
        await pilot.press("backspace")
        slow.second.set()
        await until(pilot, lambda: slow.ended == ["h"])
        for _ in range(5):
            await pilot.pause()
        assert app.keys == ["", f"conversation {id}"]
        assert app.drawn()[0] == " Today"


# Renaming, pinning, deleting


async def test_a_title_is_rewritten_in_its_place(told: Told) -> None:
    second, first = told.said("Second", DAY), told.said("First")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await listed(pilot, app, first, second)
        await pilot.press("down", "r")
        field = app.bar.query_one(Rename)
        await until(pilot, lambda: field.has_focus)
        line = app.bar.rows.line_of(f"conversation {second}")
        assert line is not None
        assert field.region.y == app.bar.rows.region.y + line
        assert field.value == "Second"
        write(app, "[/] x")
        await pilot.press("enter")
        await until(pilot, lambda: told.store.get(second).title == "[/] x")
        await until(pilot, lambda: " [/] x" in app.drawn())
        assert app.said == [Sidebar.ConversationRenamed(second, "[/] x")]
        assert not app.bar.query(Rename)
        assert app.focused is app.bar.rows


@pytest.mark.parametrize(("keys", "title"), [(["escape"], "Old"), (["tab"], "new"), (["shift+tab"], "new")])
async def test_escape_keeps_the_old_title_and_going_elsewhere_the_new_one(
    told: Told, keys: list[str], title: str
) -> None:
    id = told.said("Old")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await pilot.press("r")
        write(app, "new")
        await pilot.press(*keys)
        await until(pilot, lambda: not app.bar.query(Rename))
        await until(pilot, lambda: f" {title}" in app.drawn())
        assert told.store.get(id).title == title


async def test_a_terminal_that_loses_the_focus_ends_no_renaming(told: Told) -> None:
    told.said("Old")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await pilot.press("r")
        write(app, "new")
        app.app_focus = False
        await pilot.pause()
        app.app_focus = True
        await pilot.pause()
        assert app.bar.query_one(Rename).value == "new"


async def test_a_pin_goes_on_and_off(told: Told) -> None:
    old, new = told.said("Old", DAY), told.said("New")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await listed(pilot, app, new, old)
        await pilot.press("down", "p")
        await listed(pilot, app, old, new)
        assert app.drawn()[0] == " Pinned"
        assert app.bar.at is not None
        assert app.bar.at.id == old
        await pilot.press("p")
        await listed(pilot, app, new, old)


@pytest.mark.parametrize("way", ["key", "button"])
async def test_what_is_deleted_comes_back_by_key_and_button(told: Told, way: str) -> None:
    one, two, three = told.said("One", 3 * HOUR), told.said("Two", 2 * HOUR), told.said("Three", HOUR)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await listed(pilot, app, three, two, one)
        if way == "key":
            await pilot.press("d", "delete")
        else:  # faster than the store is
            app.bar.action_delete()
            app.bar.action_delete()
        await listed(pilot, app, one)
        await until(pilot, lambda: len(app.said) == 2)
        assert app.said == [Sidebar.ConversationDeleted(three, "Three"), Sidebar.ConversationDeleted(two, "Two")]
        assert [summary.id for summary in told.store.summaries()] == [one]
        assert any("Deleted Two" in line and "Undo" in line for line in screen_lines(pilot))
        for left in ([two, one], [three, two, one]):
            await (pilot.press("u") if way == "key" else pilot.click(app.bar.query_one(Undo).query_one(KeyButton)))
            await listed(pilot, app, *left)
        assert app.said[2:] == [Sidebar.ConversationRestored(two), Sidebar.ConversationRestored(three)]
        assert not app.bar.query_one(Undo).display
        await pilot.press("u")
        assert len(app.said) == 4


async def test_a_hit_is_renamed_and_deleted_by_its_conversation(told: Told) -> None:
    other, id = told.said("Other needle", DAY), told.said("Hay", HOUR, ["a needle"])
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await search(pilot, app, "needle")
        await pilot.press("down", "end", "r")
        write(app, "Renamed")
        await pilot.press("enter")
        hit = app.bar.at
        assert hit is not None
        await until(pilot, lambda: told.store.get(hit.id).title == "Renamed")
        await pilot.press("d")
        await until(
            pilot, lambda: [summary.id for summary in told.store.summaries()] == [{id: other, other: id}[hit.id]]
        )
        await until(pilot, lambda: "Renamed" not in "".join(app.drawn()))


async def test_what_the_store_refuses_is_one_line_and_nothing_else_happens(told: Told) -> None:
    id = told.said("One")

    class Broken(Slow):
        def delete(self, id: int) -> None:
            raise StoreError("the drive is [full]: free some space")

    app = Host(Broken(told.store))  # type: ignore[arg-type]
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await ready(pilot, app)
        await pilot.press("d")
        await until(pilot, lambda: any("is [full]: free" in line for line in screen_lines(pilot)))
        await listed(pilot, app, id)
        assert app.said == []
        assert not app.bar.query_one(Undo).waiting


# Files


async def test_a_conversation_goes_out_and_comes_in_by_the_dialog(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = told.said("What [is] it?")
    app = Host(told.store)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await ready(pilot, app)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, PathDialog))
        assert app.screen.query_one(Field).value == "What-is-it.md"
        write(app, "What-is-it.json")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "What-is-it.json").exists)
        await until(pilot, lambda: any("Exported to" in line for line in screen_lines(pilot)))
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, PathDialog))
        write(app, "gone.json")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.query_one("#path-said").has_class("-error"))
        assert "gone.json cannot be read" in str(app.screen.query_one("#path-said").render())
        app.screen.query_one(Field).value = "What-is-it.json"
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, PathDialog))
        (message,) = app.said
        assert isinstance(message, Sidebar.ConversationImported)
        await until(pilot, lambda: len([key for key in app.keys if key]) == 2)
        assert message.conversation != first


@pytest.mark.parametrize("way", ["escape", "button"])
async def test_the_dialog_is_given_up_and_its_buttons_work(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told.said("One")
    app = Host(told.store)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        app.bar.toggle()
        await pilot.pause()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, PathDialog))
        cancel = app.screen.query(KeyButton).last()
        await (pilot.press("escape") if way == "escape" else pilot.click(cancel))
        await until(pilot, lambda: not isinstance(app.screen, PathDialog))
        assert list(tmp_path.iterdir()) == []
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, PathDialog))
        await pilot.click(app.screen.query(KeyButton).first())
        await until(pilot, (tmp_path / "One.md").exists)


# Mouse


async def test_every_button_does_what_its_key_does(told: Told) -> None:
    id = told.said("One")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        buttons = {str(button.render()): button for button in app.bar.query(KeyButton)}
        await pilot.click(buttons["New"])
        await until(pilot, lambda: app.said == [Sidebar.NewWanted()])
        await pilot.click(buttons["Rename"])
        await until(pilot, lambda: app.bar.query(Rename))
        await pilot.press("escape")
        await pilot.click(buttons["Pin"])
        await until(pilot, lambda: told.store.summaries()[0].pinned)
        for name in ("Export", "Import"):
            await pilot.click(buttons[name])
            await until(pilot, lambda: isinstance(app.screen, PathDialog))
            await pilot.press("escape")
        await pilot.click(buttons["Delete"])
        await until(pilot, lambda: Sidebar.ConversationDeleted(id, "One") in app.said)
        assert told.store.summaries() == []


# Widths and scripts


async def test_below_a_hundred_columns_it_is_folded_and_opens_until_a_choice(told: Told) -> None:
    id = told.said("One")
    app = Host(told.store)
    async with app.run_test(size=(99, 30)) as pilot:
        await ready(pilot, app)
        page = app.screen.query_one("#page")
        assert not app.bar.display
        assert page.region.width == 99
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert app.bar.display
        assert app.focused is app.bar.rows
        assert page.region.width == 99 - app.bar.region.width
        await pilot.press("enter")
        await until(pilot, lambda: app.said == [Sidebar.ConversationChosen(id)])
        assert not app.bar.display
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert app.bar.display
        assert page.region.width == 100 - app.bar.region.width
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert not app.bar.display
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert app.bar.display


async def test_wide_letters_are_whole_in_a_narrow_window(told: Told) -> None:
    """What lies over something else is cut where that begins, in the middle of a letter if need be."""
    told.said("日本語の題名")
    app = Host(told.store)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        app.screen.query_one("#page").styles.margin = (0, 2)
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert any("日本語の題名" in line for line in screen_lines(pilot))


async def test_a_new_search_begins_at_its_first_hit(told: Told) -> None:
    ids = [told.said(f"needle {n}", n * HOUR) for n in range(9)]
    app = Host(told.store)
    async with app.run_test(size=(120, 12)) as pilot:
        await ready(pilot, app)
        app.bar.opened = ids[-1]
        await search(pilot, app, "needle")
        assert app.bar.rows.cursor == 1
        assert app.bar.rows.scroll_offset.y == 0
        await pilot.press("down", "end")
        app.bar.reload()
        for _ in range(5):
            await pilot.pause()
        assert app.bar.rows.cursor == len(app.bar.rows.rows) - 1


async def test_search_opens_what_is_folded(told: Told) -> None:
    told.said("One")
    app = Host(told.store)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        app.bar.action_search()
        await pilot.pause()
        assert app.bar.display
        assert app.focused is app.field


async def test_resizing_to_nothing_and_back_changes_nothing(told: Told) -> None:
    ids = [told.said(f"Number {n}", n * HOUR) for n in range(30)]
    app = Host(told.store)
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot, app, *ids)
        await search(pilot, app, "number 7")
        for size in [(5, 3), (1, 1), (200, 60)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert app.drawn()[:2] == [" 2 hits in 1 chat", " Number 7"]


WIDE = [
    "日本語のとても長い題名がここにあります", "\U0001f468\u200d\U0001f469\u200d\U0001f467 family and all their friends",
    "e\u0301" * 60, "x" * 5_000, "שלום עולם זה כותרת ארוכה מאוד", "مرحبا " * 9, "🇩🇪🇫🇷🇯🇵" * 8,
]  # fmt: skip


async def test_every_title_is_literal_in_the_list_in_hits_and_while_it_is_renamed(told: Told) -> None:
    texts = ["".join(CONTROL), "\u202egnp.exe", *WIDE, *MARKUP]
    for number, text in enumerate(texts):
        told.store.rename(told.said("needle " + text, number * timedelta(minutes=1)), text)
    app = Host(told.store)
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        await ready(pilot, app)
        for text in MARKUP:
            assert any(text[:28] in line for line in screen_lines(pilot))
        for row in app.bar.rows.rows:
            for width in (5, 12, 30):
                assert all(line.cell_length <= width for line in row.draw(width))
        for _ in range(3):
            await pilot.press("r")
            await until(pilot, lambda: app.bar.query(Rename))
            assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", "".join(screen_lines(pilot)))
            await pilot.press("escape", "down")
        await search(pilot, app, "needle")
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", "".join(screen_lines(pilot)))
        for y in range(1, 6):
            await pilot.click(app.bar.rows, offset=(6, y))
        assert app.is_running
        assert "Deleted" not in "".join(screen_lines(pilot))
        await pilot.press("down", "d")
        await until(pilot, lambda: app.bar.query_one(Undo).waiting)
        chosen = {Sidebar.HitChosen, Sidebar.ConversationChosen}
        assert {type(message) for message in app.said} <= {*chosen, Sidebar.ConversationDeleted}


async def test_a_pasted_control_code_reaches_no_terminal(told: Told) -> None:
    told.said("One")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        await pilot.press("slash")
        app.field.insert_text_at_cursor("a\x1b]52;c;aGk=\x07b\u202e")
        await pilot.pause()
        assert app.field.value == "a␛]52;c;aGk=␇b␦"
        assert not re.search("[\x00-\x1f\x7f-\x9f]", "".join(screen_lines(pilot)))


async def test_another_answer_elsewhere_moves_no_cursor(told: Told) -> None:
    one, two = told.said("One", HOUR), told.said("Two", 2 * HOUR)
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await listed(pilot, app, one, two)
        parent = told.store.get(two).path[-1].id
        told.store.add(two, parent, Entry("user", "more"))
        app.bar.reload()
        await listed(pilot, app, two, one)
        assert app.bar.at is not None
        assert app.bar.at.id == one


async def test_what_comes_back_while_the_window_closes_is_no_fault(told: Told) -> None:
    told.said("One")
    app = Host(told.store)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot, app)
        bar = app.bar
        await bar.query("*").remove()
        await bar._read()
        await bar._find("one", 0.0)
        await bar._change(lambda: told.store.delete(1), Sidebar.ConversationDeleted(1, "One"))
        await bar.remove()
        await bar._read()
        await bar._change(lambda: told.store.delete(2), None)
        await pilot.pause()
        assert app.is_running
