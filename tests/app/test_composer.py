"""The next message: files as chips, paths behind an @, what waits its turn, and that nothing of it is lost."""

from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from app.attachments import MAX_BYTES, Attachment, Draft
from app.widgets.chips import Chip
from app.widgets.composer import Composer
from engine.errors import EngineError
from tests.app.fakes_shelf import until
from tests.app.test_literal import lines

MARKUP = "[/][bold $x"


class ComposerApp(App[None]):
    CSS_PATH = "../../app/screens/composer.tcss"

    def __init__(self, folder: Path | None = None, take: bool = True) -> None:
        super().__init__()
        self._folder, self.take = folder, take
        self.sent: list[Draft] = []
        self.waited: list[bool] = []
        self.paused: list[Draft] = []
        self.counted: list[int] = []
        self.escapes = 0

    def compose(self) -> ComposeResult:
        yield Composer(quiet_s=0.0, pause_s=0.0, folder=self._folder)

    async def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.sent.append(event.draft)
        self.waited.append(event.waited)
        if self.take:
            await self.composer.accept(event.draft)

    def on_composer_paused(self, event: Composer.Paused) -> None:
        self.paused.append(event.draft)

    def on_composer_counted(self, event: Composer.Counted) -> None:
        self.counted.append(event.tokens)

    def key_escape(self) -> None:
        self.escapes += 1

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def names(self) -> list[str]:
        return [file.name for file in self.composer.chips.files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("remember")
    (tmp_path / "other.md").write_text("# x")
    (tmp_path / "src dir").mkdir()
    (tmp_path / "src dir" / "main.py").write_text("print()")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\0")
    return tmp_path


async def attached(pilot: Pilot[None], app: ComposerApp, *files: Path) -> None:
    before = len(app.names)
    app.composer.attach(*files)
    await until(pilot, lambda: len(app.names) == before + len(files))


async def typed(pilot: Pilot[None], app: ComposerApp, text: str) -> None:
    """Type it, and let the paths that it offers be there."""
    for letter in text:
        await pilot.press(
            {" ": "space", "@": "at", "/": "slash", ".": "full_stop", "\\": "backslash"}.get(letter, letter)
        )
    await app.workers.wait_for_complete()
    await pilot.pause()


async def test_a_message_goes_up_and_is_forgotten_when_it_is_taken(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await attached(pilot, app, folder / "notes.txt")
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: app.sent)
        assert app.sent[0].message == "notes.txt:\n```txt\nremember\n```\n\nhi"
        assert app.waited == [False]
        await until(pilot, lambda: app.composer.draft == Draft(""))
        assert not app.composer.chips.display


async def test_a_message_that_is_not_taken_stays(folder: Path) -> None:
    app = ComposerApp(take=False)
    async with app.run_test() as pilot:
        await attached(pilot, app, folder / "notes.txt")
        await pilot.press("h", "enter")
        await until(pilot, lambda: app.sent)
        assert app.composer.waiting.drafts == (app.sent[0],)
        app.composer.prompt.insert("!")
        assert app.composer.held == Draft("h\n!", app.sent[0].files)
        await app.composer.accept(app.sent[0])
        assert app.composer.held == Draft("!")


async def test_nothing_is_not_sent_but_a_file_alone_is(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("space", "enter")
        await pilot.pause(0.01)
        assert app.sent == []
        await attached(pilot, app, folder / "other.md")
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
        assert app.sent[0].message == "other.md:\n```md\n# x\n```"


async def test_messages_wait_their_turn_in_order(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.busy = True
        await attached(pilot, app, folder / "notes.txt")
        await pilot.press("a", "enter")
        await until(pilot, lambda: app.composer.waiting.drafts)
        await pilot.press("b", "enter")
        await until(pilot, lambda: len(app.composer.waiting.drafts) == 2)
        await pilot.pause()
        assert app.sent == []
        assert app.composer.draft == Draft("")
        assert lines(pilot).count("waits its turn") == 2
        assert "+ 1 file" in lines(pilot)
        app.composer.busy = False
        await until(pilot, lambda: [draft.text for draft in app.sent] == ["a"])
        app.composer.busy = True
        app.composer.busy = False
        await until(pilot, lambda: [draft.text for draft in app.sent] == ["a", "b"])
        await until(pilot, lambda: not app.composer.waiting.display)
        assert [draft.names for draft in app.sent] == [("notes.txt",), ()]
        assert app.waited == [True, True]


@pytest.mark.parametrize("by", ["escape", "click"])
async def test_the_last_one_that_waits_is_taken_back(folder: Path, by: str) -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.busy = True
        await attached(pilot, app, folder / "notes.txt")
        await pilot.press("a", "enter")
        await until(pilot, lambda: app.composer.waiting.drafts)
        await pilot.press("b")
        await (pilot.press("escape") if by == "escape" else pilot.click(app.composer.waiting))
        await until(pilot, lambda: not app.composer.waiting.drafts)
        await until(pilot, lambda: app.names == ["notes.txt"])
        assert app.composer.prompt.text == "a\nb"
        assert app.escapes == 0
        await pilot.press("escape")
        assert app.escapes == 1
        app.composer.busy = False
        await pilot.pause()
        assert app.sent == []


async def test_what_is_refused_waits_and_enter_tries_again() -> None:
    app = ComposerApp(take=False)
    async with app.run_test() as pilot:
        app.composer.busy = True
        await pilot.press("a", "enter")
        await until(pilot, lambda: app.composer.waiting.drafts)
        app.composer.busy = False
        await until(pilot, lambda: len(app.sent) == 1)
        assert [draft.text for draft in app.composer.waiting.drafts] == ["a"]
        app.take = True
        app.composer.refuse()
        await pilot.press("enter")
        await until(pilot, lambda: not app.composer.waiting.drafts)
        assert [draft.text for draft in app.sent] == ["a", "a"]


async def test_files_are_refused_in_one_line_and_the_others_come(folder: Path) -> None:
    (folder / "big.txt").write_text("x" * (MAX_BYTES + 1))
    app = ComposerApp()
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        app.composer.attach(folder / "image.png", folder / "none", folder / "big.txt", folder, folder / "notes.txt")
        await until(pilot, lambda: app.names == ["notes.txt"])
        await pilot.pause()
        said = [notification.message for notification in app._notifications]
        assert len(said) == 4
        for why, message in zip(
            ("image.png is no text", "there is no", "big.txt is too", "is a folder"), said, strict=True
        ):
            assert why in message
        assert "image.png is no text" in lines(pilot)


async def test_a_drop_becomes_chips_and_other_pastes_become_text(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(f"'{folder / 'notes.txt'}' {folder / 'other.md'} "))
        await until(pilot, lambda: app.names == ["notes.txt", "other.md"])
        assert app.composer.prompt.text == ""
        app.post_message(events.Paste(f"see {folder / 'notes.txt'}"))
        await until(pilot, lambda: app.composer.prompt.text == f"see {folder / 'notes.txt'}")
        assert len(app.names) == 2


async def test_an_at_offers_paths_and_attaches_the_one_that_is_taken(folder: Path) -> None:
    app = ComposerApp(folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await typed(pilot, app, "see @s")
        paths = app.composer.paths
        assert paths.display
        assert [candidate.shown for candidate in paths._candidates] == ["src dir/", "notes.txt"]
        await pilot.press("tab")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.composer.prompt.text == "see @src\\ dir/"
        assert [candidate.shown for candidate in paths._candidates] == ["main.py"]
        await pilot.press("enter")
        await until(pilot, lambda: app.names == ["main.py"])
        assert app.composer.prompt.text == "see "
        assert not paths.display
        assert app.sent == []
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)


async def test_the_list_of_paths_goes_by_keys_and_mouse(folder: Path) -> None:
    app = ComposerApp(folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("x")
        await pilot.press("ctrl+o")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.composer.prompt.text == "x @"
        paths = app.composer.paths
        assert [candidate.shown for candidate in paths._candidates] == [
            "src dir/",
            "image.png",
            "notes.txt",
            "other.md",
        ]
        await pilot.press("down", "down", "up", "down")
        assert paths.chosen is not None
        assert paths.chosen.shown == "notes.txt"
        await pilot.press("escape")
        assert not paths.display
        assert app.escapes == 0
        await typed(pilot, app, "o")
        await pilot.click(paths, offset=(2, 1))
        await until(pilot, lambda: app.names == ["notes.txt"])
        assert app.composer.prompt.text == "x "
        assert app.composer.prompt.has_focus


async def test_an_at_that_means_no_path_is_text(folder: Path) -> None:
    app = ComposerApp(folder)
    async with app.run_test() as pilot:
        await typed(pilot, app, "@zzz")
        assert not app.composer.paths.display
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
        assert app.sent[0].message == "@zzz"


@pytest.mark.parametrize("by", ["backspace", "delete", "click"])
async def test_a_chip_is_taken_off(folder: Path, by: str) -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await attached(pilot, app, folder / "notes.txt", folder / "other.md")
        await pilot.press("a", "home")
        if by == "backspace":
            await pilot.press("backspace", "backspace")
        elif by == "delete":
            app.query(Chip).first().focus()
            await pilot.press("delete", "delete")
        else:
            await pilot.click(app.query(Chip).last())
            await until(pilot, lambda: len(app.names) == 1)
            await pilot.click(app.query(Chip).last())
        await until(pilot, lambda: app.names == [])
        assert app.composer.prompt.text == "a"
        await until(pilot, lambda: app.composer.prompt.has_focus)


async def test_a_file_of_the_same_name_gives_way(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await attached(pilot, app, folder / "notes.txt", folder / "other.md")
        (folder / "notes.txt").write_text("new")
        app.composer.attach(folder / "notes.txt")
        await until(pilot, lambda: app.names == ["other.md", "notes.txt"])
        assert app.composer.chips.files[1].text == "new"


async def test_tokens_are_counted_when_a_model_can_and_anew_by_another(folder: Path) -> None:
    asked: list[str] = []

    async def count(text: str) -> int:
        asked.append(text)
        return 1234

    async def fails(text: str) -> int:
        raise EngineError("gone")

    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await attached(pilot, app, folder / "notes.txt")
        await pilot.pause()
        assert "notes.txt" in lines(pilot)
        assert "8 B ×" in lines(pilot)
        app.composer.count_by(count)
        await until(pilot, lambda: "8 B · 1,234 tokens ×" in lines(pilot))
        assert asked == ["notes.txt:\n```txt\nremember\n```"]
        await attached(pilot, app, folder / "other.md")
        await until(pilot, lambda: lines(pilot).count("1,234 tokens") == 2)
        assert len(asked) == 2
        app.composer.count_by(fails)
        await until(pilot, lambda: "tokens" not in lines(pilot))
        assert len(app.names) == 2


async def test_the_message_is_counted_once_a_pause_and_not_while_it_would_wait(folder: Path) -> None:
    asked: list[str] = []

    async def count(text: str) -> int:
        asked.append(text)
        return len(text.split())

    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.count_by(count)
        app.composer.prompt.text = "one two three"
        await until(pilot, lambda: app.counted[-1:] == [3])
        await attached(pilot, app, folder / "notes.txt")
        await until(pilot, lambda: app.counted[-1] == 7)
        assert asked == ["one two three", "notes.txt:\n```txt\nremember\n```"]
        app.composer.busy = True
        await until(pilot, lambda: app.counted[-1] == 0)
        app.composer.prompt.text = "one"
        await until(pilot, lambda: app.paused[-1].text == "one")
        await pilot.pause()
        assert len(asked) == 2
        assert app.counted[-1] == 0
        app.composer.busy = False
        await until(pilot, lambda: app.counted[-1] == 5)
        app.composer.count_by(None)
        await until(pilot, lambda: app.counted[-1] == 0)


async def test_a_pause_tells_the_whole_message_once(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("a")
        await until(pilot, lambda: app.paused)
        assert app.paused[-1] == Draft("a")
        await attached(pilot, app, folder / "notes.txt")
        await until(pilot, lambda: app.paused[-1].names == ("notes.txt",))
        await pilot.press("enter")
        await until(pilot, lambda: app.paused[-1] == Draft(""))


async def test_a_conversation_takes_its_draft_along(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await attached(pilot, app, folder / "notes.txt")
        await pilot.press("a")
        held = await app.composer.clear()
        assert (held.text, held.names) == ("a", ("notes.txt",))
        assert app.composer.draft == Draft("")
        await pilot.press("b")
        await app.composer.put(held)
        await app.composer.put(Draft(" "))
        assert (app.composer.prompt.text, app.names) == ("a\nb", ["notes.txt"])


async def test_names_and_messages_are_shown_letter_by_letter(tmp_path: Path) -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.composer.chips.add(Attachment(MARKUP, "x", 1), Attachment("日本語の長い名前" * 9, "x", 1))
        app.composer.waiting.drafts = (Draft(f"{MARKUP}\nשלום"), Draft("日本語" * 99))
        await pilot.pause()
        shown = lines(pilot)
        assert shown.count(MARKUP) == 2
        assert "שלום" in shown
        assert shown.count("…") == 2
        assert "1 B ×" in shown
        assert app.is_running


async def test_the_prompt_takes_a_third_of_the_screen_at_most() -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 60)) as pilot:
        prompt = app.composer.prompt
        assert prompt.size.height == 1
        for text in ("a\nb\nc", "x\n" * 500):
            prompt.put(text)
            await pilot.pause()
        assert prompt.outer_size.height == 60 * 33 // 100
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert prompt.outer_size.height == 24 * 33 // 100
