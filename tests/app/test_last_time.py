"""What a window takes up from the last one: speculation chosen by key or mouse; and a word on models that are gone."""

from app.settings import Settings
from app.tui import setup_of
from app.widgets.mode_line import ModeLine
from app.widgets.notice import Notice
from tests.app.fakes_shelf import FakeShelf, chat_app, until


async def test_speculation_chosen_by_key_or_mouse_is_kept_and_that_of_one_conversation_is_not() -> None:
    kept: list[str] = []
    app, _ = chat_app(remember=kept.append, settings=Settings(spec="auto"))
    async with app.run_test(size=(160, 50)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.state == "ready")  # type: ignore[attr-defined]
        await pilot.press("f2")
        await until(pilot, lambda: kept == ["off"])
        screen.query_one(ModeLine).post_message(ModeLine.ModeWanted())
        await until(pilot, lambda: kept == ["off", "3"])
        chat = screen.chat  # type: ignore[attr-defined]
        chat.branch.set_options("", chat.branch.options.merge(type(chat.branch.options)(spec="off")))
        await pilot.press("f2")
        await pilot.pause()
        assert (chat.branch.options.spec, kept) == ("3", ["off", "3"])


def test_the_next_window_drafts_as_the_last_one_did_and_the_demo_keeps_nothing(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    off = Settings(history=False)
    setup_of(Settings(history=False, demo=True)).remember("2")
    assert setup_of(off).settings == off
    setup_of(off).remember("off")
    assert setup_of(off).settings == Settings(history=False, spec="off")
    assert setup_of(Settings(history=False, spec="4")).settings.spec == "4"


async def test_that_models_used_last_are_gone_is_told_once_they_are_loaded_in_their_place() -> None:
    shelf = FakeShelf(installed=True)
    shelf.said = ("mine, used last, is no longer here: tiny is taken",)
    app, _ = chat_app(shelf=shelf)
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: app.screen.query(Notice))
        assert shelf.said[0] in [str(notice.render()) for notice in app.screen.query(Notice)]
