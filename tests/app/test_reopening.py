"""What the models have read, kept beside its conversation: when it is written, what is said of it, who waits for it."""

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from app import paths
from app.bridge import KEEPING, TAKING_UP
from app.caches import Caches
from app.screens.answering import QUIET_S
from app.screens.chat import ChatScreen
from app.settings import Settings
from app.store.store import Store
from app.tui import ChatApp, setup_of
from engine.events import Kept, Resumed
from tests.app.fakes_shelf import chat_app, until
from tests.app.test_chat import chat, notices, questions, ready
from tests.app.test_talk import say
from tests.fakes_client import FakeClient, FakeEngine, finished

WHY = "the saved caches were made by another model file: the conversation is read again"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the caches do takes long."""
    monkeypatch.setattr("app.bridge.SLOW_S", 0.0)


class Clock:
    """A time that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def toasts(app: ChatApp) -> list[str]:
    return [toast.message for toast in app._notifications]


async def typed(pilot: Pilot[None], engine: FakeEngine, text: str) -> None:
    """Type this, and wait until the engine reads ahead."""
    before = len(engine.client.prepared)
    await pilot.press(*text)
    await until(pilot, lambda: len(engine.client.prepared) > before)


async def new(pilot: Pilot[None], screen: ChatScreen) -> None:
    await pilot.press("ctrl+n")
    await until(pilot, lambda: screen.chat.branch.id is None)


# What is said of it


async def test_why_a_conversation_is_read_again_is_said_once_and_in_it(tmp_path: Path) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        first = screen.chat.branch.id
        assert notices(screen) == [], "there was nothing to take up"
        await new(pilot, screen)
        await say(pilot, app, engine, "two", "second")
        engine.client.taken_up = Resumed(target=0, draft=0, reason=WHY)
        await screen.open(first)
        await typed(pilot, engine, "t")
        await until(pilot, lambda: notices(screen) == [WHY])
        await say(pilot, app, engine, "three", "third")
        assert notices(screen) == [WHY]


async def test_a_note_of_another_conversation_is_not_said_here(tmp_path: Path) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        engine.client.taken_up = Resumed(target=0, draft=0, reason=WHY)
        engine.client.disk.clear()
        screen.prompt.text = "one"
        await pilot.press("enter")
        await until(pilot, lambda: engine.client.resumed)
        await new(pilot, screen)
        engine.client.disk.set()
        await until(pilot, lambda: engine.client.requests)
        engine.client.send(finished("first"))
        await until(pilot, lambda: screen.state == "ready")
        assert notices(screen) == []


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([Kept(bytes=0, outcome="nothing to keep", reason="there is nothing to keep")] * 2, []),
        ([Kept(bytes=9)] * 2, []),
        ([Kept(bytes=0, outcome="failed", reason="the caches cannot be kept (No space left)")] * 2, ["No space left"]),
        (
            [
                Kept(bytes=0, outcome="failed", reason=f"the caches cannot be kept ({why})")
                for why in ("full", "locked")
            ],
            ["full", "locked"],
        ),
        (
            [Kept(bytes=0, outcome="too large", reason=f"the caches take {size} bytes") for size in (5, 6)],
            ["5 bytes (kept_gb"],
        ),
    ],
)
async def test_why_caches_are_not_kept_is_said_once_for_each_reason(
    tmp_path: Path, results: list[Kept], said: list[str]
) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        for written in results:
            engine.client.written = written
            before = len(engine.client.kept)
            await new(pilot, screen)
            await say(pilot, app, engine, "more", "answer")
            assert len(engine.client.kept) == before + 1
        await pilot.pause()
        found = toasts(app)
        assert len(found) == len(said)
        assert all(part in toast for part, toast in zip(said, found, strict=True))


# What takes long


async def test_what_takes_long_is_said_while_it_does(tmp_path: Path, at_once: None) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        await until(pilot, lambda: screen.status.doing == "")
        await new(pilot, screen)
        engine.client.disk.clear()
        await pilot.press(*"two")
        await until(pilot, lambda: screen.status.doing == KEEPING)
        assert KEEPING in str(screen.status.render())
        screen.prompt.text = "two"
        await pilot.press("enter")
        await until(pilot, lambda: questions(screen) == ["two"])
        engine.client.disk.set()
        await until(pilot, lambda: len(engine.client.requests) == 2)
        await until(pilot, lambda: screen.status.doing == "")


async def test_what_is_done_soon_is_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.bridge.SLOW_S", 3600.0)
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        seen: list[str] = []
        screen.watch(screen.status, "doing", seen.append, init=False)
        await say(pilot, app, engine, "one", "first")
        await new(pilot, screen)
        await say(pilot, app, engine, "two", "second")
        assert engine.client.kept
        assert seen == []


async def test_escape_gives_a_question_back_while_caches_are_taken_up(tmp_path: Path, at_once: None) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        engine.client.disk.clear()
        screen.prompt.text = "one"
        await pilot.press("enter")
        await until(pilot, lambda: screen.status.doing == TAKING_UP)
        await pilot.press("escape")
        await until(pilot, lambda: screen.state == "ready" and screen.prompt.text == "one")
        assert engine.client.requests == []
        await pilot.press("enter")
        await until(pilot, lambda: questions(screen) == ["one"] and screen.state == "writing")
        engine.client.disk.set()
        await until(pilot, lambda: engine.client.requests)
        assert len(engine.client.resumed) == 1, "it has been taken up, though nobody waited for it"
        engine.client.send(finished("first"))
        await until(pilot, lambda: screen.state == "ready")


async def test_whoever_types_on_while_caches_are_taken_up_does_not_begin_that_anew(tmp_path: Path) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        engine.client.disk.clear()
        await pilot.press("a")
        await until(pilot, lambda: engine.client.resumed)
        await pilot.press("b")
        await until(pilot, lambda: "ab" in screen.chat.store.unsent())
        engine.client.disk.set()
        await until(pilot, lambda: engine.client.prepared)
        assert engine.client.prepared[-1].messages[-1].content == "ab"
        assert len(engine.client.resumed) == 1


@pytest.mark.parametrize("key", ["ctrl+q", "f2"])
async def test_keys_work_while_another_pair_waits_for_the_caches(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chat.KEEP_S", 0.0)
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        engine.client.disk.clear()
        assert screen.config is not None
        await screen.load(screen.config)
        await until(pilot, lambda: engine.client.kept)
        assert screen.state == "loading"
        await pilot.press(key)
        if key == "f2":
            await until(pilot, lambda: screen.chat.speculation.mode == "off")
            assert len(engine.client.configs) == 1
            engine.client.disk.set()
            await ready(pilot, app)
            assert len(engine.client.configs) == 2
        else:
            await asyncio.wait_for(app._task, 5)  # type: ignore[arg-type]
            assert engine.client.closed


# When it is written


async def test_what_was_read_is_kept_once_nobody_did_anything_for_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    app, engine = chat_app(caches=Caches(tmp_path), clock=clock)
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        number = screen.chat.branch.id
        clock.now = QUIET_S
        await screen._look()
        assert engine.client.kept == [], "not yet"
        clock.now += 1
        await screen._look()
        assert engine.client.kept == [tmp_path / str(number)]
        await screen._look()
        assert len(engine.client.kept) == 1, "nothing has changed since"
        await say(pilot, app, engine, "two", "second")
        assert len(engine.client.resumed) == 1, "the engine still holds it"
        clock.now += QUIET_S + 1
        await screen._look()
        assert len(engine.client.kept) == 2


async def test_what_was_being_read_ahead_goes_on_after_it_was_kept(tmp_path: Path) -> None:
    clock = Clock()
    app, engine = chat_app(caches=Caches(tmp_path), clock=clock)
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        await typed(pilot, engine, "more")
        before = engine.client.prepared[-1:]
        clock.now += QUIET_S + 1
        await screen._look()
        assert len(engine.client.kept) == 1
        assert engine.client.prepared[-2:] == before * 2
        for _ in range(2):
            await screen._look()
            assert len(engine.client.kept) == 2, "once more, with what has been read since"
        assert engine.client.prepared[-2:] == before * 2


async def test_who_begins_to_type_while_it_is_kept_is_served_after_it(tmp_path: Path) -> None:
    clock = Clock()
    app, engine = chat_app(caches=Caches(tmp_path), clock=clock)
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        engine.client.disk.clear()
        clock.now += QUIET_S + 1
        screen._look_around()
        await until(pilot, lambda: engine.client.kept)
        screen.prompt.text = "two"
        await pilot.press("enter")
        await until(pilot, lambda: questions(screen) == ["one", "two"])
        assert len(engine.client.requests) == 1
        engine.client.disk.set()
        await until(pilot, lambda: len(engine.client.requests) == 2)


# Orders of events that are not the usual ones


async def test_a_conversation_that_is_deleted_while_it_is_kept_leaves_nothing(tmp_path: Path) -> None:
    class Writing(FakeClient):
        async def keep(self, folder: Path, most: int | None = None) -> Kept:
            kept = await super().keep(folder, most)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "kept.json").write_text("private")
            return kept

    app, engine = chat_app(Writing(), caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        first = screen.chat.branch.id
        assert first is not None
        await new(pilot, screen)
        engine.client.disk.clear()
        await pilot.press("x")
        await until(pilot, lambda: engine.client.kept)
        screen.chat.store.delete(first)
        screen.chat.forget(first)
        engine.client.disk.set()
        await until(pilot, lambda: engine.client.prepared)
        assert [*tmp_path.iterdir()] == []
        assert toasts(app) == []


async def test_what_another_window_deleted_is_not_kept_by_this_one(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    app, engine = chat_app(store=lambda: Store.open(file), caches=Caches(tmp_path / "caches"))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        assert screen.chat.branch.id is not None
        other = Store.open(file)
        other.delete(screen.chat.branch.id)
        other.close()
        await new(pilot, screen)
        await say(pilot, app, engine, "two", "second")
        assert engine.client.kept == []


async def test_what_comes_back_after_it_was_deleted_is_still_held_and_kept_again(tmp_path: Path) -> None:
    clock = Clock()
    app, engine = chat_app(caches=Caches(tmp_path), clock=clock)
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        first = screen.chat.branch.id
        assert first is not None
        clock.now += QUIET_S + 1
        await screen._look()
        screen.chat.store.delete(first)
        screen.chat.forget(first)
        await screen._look()
        assert len(engine.client.kept) == 1
        screen.chat.store.restore(first)
        await screen._look()
        assert engine.client.kept == [tmp_path / str(first)] * 2
        await say(pilot, app, engine, "two", "second")
        assert len(engine.client.resumed) == 1


async def test_folders_of_conversations_that_are_gone_are_removed_at_the_start(tmp_path: Path) -> None:
    store = Store.open(None)
    number, gone = store.create(), store.create()
    store.delete(gone)
    for name in (number, gone, 99):
        (tmp_path / str(name)).mkdir()
    app, _ = chat_app(store=lambda: store, caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: [path.name for path in tmp_path.iterdir()] == [str(number)])
        assert store.has(number)


async def test_other_models_hold_nothing_and_are_asked_to_take_up(tmp_path: Path) -> None:
    """While the old pair takes a conversation up another one is chosen: that must not count as holding it."""
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        assert screen.config is not None
        await screen.load(screen.config)
        await ready(pilot, app)
        assert len(engine.client.kept) == 1
        await say(pilot, app, engine, "two", "second")
        assert len(engine.client.resumed) == 2
        engine.client.disk.clear()
        await new(pilot, screen)
        await pilot.press("x")
        await until(pilot, lambda: len(engine.client.kept) == 2)
        await screen.load(screen.config)
        engine.client.disk.set()
        await ready(pilot, app)
        before = len(engine.client.resumed)
        await say(pilot, app, engine, "three", "third")
        assert len(engine.client.resumed) > before
        assert screen.chat._held is screen.chat.branch


async def test_an_engine_that_dies_while_it_takes_up_is_found_dead_and_holds_nothing(tmp_path: Path) -> None:
    app, engine = chat_app(FakeClient(), FakeClient(), caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        client = engine.client
        client.disk.clear()
        screen.prompt.text = "one"
        await pilot.press("enter")
        await until(pilot, lambda: client.resumed)
        client.closed = True
        client.disk.set()
        await until(pilot, lambda: chat(app).state == "dead")
        assert screen.chat._held is None
        assert screen.prompt.text == "one"


@pytest.mark.parametrize("off", ["history", "budget"])
async def test_nothing_is_written_where_nothing_may_be_kept(tmp_path: Path, off: str) -> None:
    clock = Clock()
    caches = Caches(None) if off == "history" else Caches(tmp_path, budget=0)
    app, engine = chat_app(caches=caches, clock=clock)
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        clock.now += QUIET_S + 1
        await screen._look()
        await new(pilot, screen)
        await say(pilot, app, engine, "two", "second")
        client = engine.client
        await pilot.press("ctrl+q")
    assert (client.kept, client.resumed) == ([], [])


async def test_models_that_rest_have_time_to_keep_and_the_window_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chat.KEEP_S", 0.0)
    app, engine = chat_app(FakeClient(), FakeClient(), caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        client = engine.client
        client.disk.clear()
        await screen.unload()
        await until(pilot, lambda: client.kept)
        assert screen.state == "asleep"
        assert not client.closed
        await pilot.press("f2")
        await until(pilot, lambda: screen.chat.speculation.mode == "off")
        client.disk.set()
        await until(pilot, lambda: client.closed)


def test_where_conversations_cannot_be_kept_what_was_read_of_them_is_not_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their numbers are those of others, whose folders are not theirs."""
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    paths.conversations_file().mkdir(parents=True)
    setup = setup_of(Settings())
    assert setup.faults[-1].endswith("nothing that is said is kept")
    assert setup.caches.folder(1) is None
