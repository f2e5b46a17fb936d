"""The first run: choosing a pair by key or mouse, fetching it, failing, cancelling, going on into the chat."""

import asyncio

import pytest
from textual.pilot import Pilot

from app.errors import NotEnoughMemory
from app.screens.chat import ChatScreen
from app.screens.first_run import FirstRunScreen
from app.setup import Offer
from app.tui import ChatApp
from app.widgets.pair_card import PairCard
from models.errors import ModelsError
from tests.app.fakes_shelf import OFFERS, FakeShelf, setup, until
from tests.fakes_client import FakeEngine


def first_run(shelf: FakeShelf | None = None) -> tuple[ChatApp, FakeShelf, FakeEngine]:
    shelf, engine = shelf or FakeShelf(), FakeEngine()
    return ChatApp(setup(engine, shelf)), shelf, engine


def screen_of(app: ChatApp) -> FirstRunScreen:
    assert isinstance(app.screen, FirstRunScreen)
    return app.screen


async def begun(pilot: Pilot[None], shelf: FakeShelf) -> None:
    await until(pilot, shelf.begun.is_set)


async def test_the_cards_tell_title_size_and_need_of_memory() -> None:
    app, _, _ = first_run()
    async with app.run_test():
        cards = [str(card.render()) for card in app.screen.query(PairCard)]
        assert len(cards) == len(OFFERS)
        for said in (OFFERS[0].title, "1.63 GB", "needs 3.10 GB", "12.4 GB free", OFFERS[0].note):
            assert said in cards[0]


async def test_nothing_is_fetched_and_no_engine_started_before_a_choice() -> None:
    app, shelf, engine = first_run()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert not shelf.begun.is_set()
        assert engine.started == []


@pytest.mark.parametrize(
    ("keys", "pair"),
    [(["enter"], "coder"), (["down", "enter"], "tiny"), (["tab", "space"], "tiny"), (["up", "enter"], "tiny")],
)
async def test_a_choice_by_keys_is_fetched_and_goes_on_into_the_chat(keys: list[str], pair: str) -> None:
    app, shelf, engine = first_run()
    async with app.run_test() as pilot:
        await pilot.press(*keys)
        await begun(pilot, shelf)
        shelf.release.set()
        await until(pilot, lambda: isinstance(app.screen, ChatScreen) and app.screen.state == "ready")
        assert shelf.fetched == [pair]
        assert len(engine.client.configs) == 1
        assert app.focused is app.screen.query_one("#prompt")


async def test_a_choice_by_mouse() -> None:
    app, shelf, _ = first_run()
    async with app.run_test() as pilot:
        await pilot.click("#pair-tiny")
        await begun(pilot, shelf)
        shelf.release.set()
        await until(pilot, lambda: shelf.fetched)
        assert shelf.fetched == ["tiny"]


async def test_the_bar_shows_how_far_it_is() -> None:
    app, shelf, _ = first_run()
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "500 MB" in str(screen_of(app).bar.render()))
        assert "500 MB / 1.00 GB · 50 %" in str(screen_of(app).bar.render())
        shelf.release.set()
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert isinstance(app.screen, ChatScreen)


async def test_a_failure_is_one_line_and_can_be_tried_again() -> None:
    app, shelf, _ = first_run()
    shelf.error = ModelsError("no network: check the connection")
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await begun(pilot, shelf)
        shelf.release.set()
        await until(pilot, lambda: "network" in str(screen_of(app).said.render()))
        assert str(screen_of(app).said.render()) == "no network: check the connection (Enter tries again)"
        assert screen_of(app).said.has_class("-error")
        shelf.begun.clear()
        await pilot.press("enter")
        await begun(pilot, shelf)
        assert str(screen_of(app).said.render()) == ""
        shelf.release.set()
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert shelf.fetched == ["coder"]


async def test_a_pair_that_cannot_be_loaded_after_all_leaves_the_choice_open() -> None:
    app, shelf, _ = first_run()
    shelf.config_error = NotEnoughMemory("not enough memory: close other programs")
    shelf.release.set()
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "memory" in str(screen_of(app).said.render()))
        assert screen_of(app).said.has_class("-error")
        shelf.release.set()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert isinstance(app.screen, ChatScreen)


async def test_an_unforeseen_failure_is_described() -> None:
    app, shelf, _ = first_run()
    shelf.error = KeyError("size")
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await begun(pilot, shelf)
        shelf.release.set()
        await until(pilot, lambda: screen_of(app).said.has_class("-error"))
        assert "unexpected KeyError ('size'): run it again with --debug" in str(screen_of(app).said.render())


async def test_escape_cancels_and_the_choice_can_be_made_again() -> None:
    app, shelf, _ = first_run()
    async with app.run_test() as pilot:
        await pilot.press("escape")
        await pilot.press("enter")
        await begun(pilot, shelf)
        await pilot.press("escape")
        await until(pilot, lambda: not screen_of(app).fetching)
        assert shelf.was_cancelled.is_set()
        assert "Stopped" in str(screen_of(app).said.render())
        assert not screen_of(app).said.has_class("-error")
        shelf.begun.clear()
        await pilot.press("enter")
        await begun(pilot, shelf)
        shelf.release.set()
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert shelf.fetched == ["coder"]


async def test_a_second_choice_during_a_download_is_ignored() -> None:
    app, shelf, _ = first_run()
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await begun(pilot, shelf)
        await pilot.press("down", "enter")
        shelf.release.set()
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert shelf.fetched == ["coder"]


async def test_quitting_stops_the_download() -> None:
    app, shelf, _ = first_run()
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await begun(pilot, shelf)
        await pilot.press("ctrl+q")
        await asyncio.wait_for(app._task, 2)  # type: ignore[arg-type]
    assert await asyncio.to_thread(shelf.was_cancelled.wait, 2)


async def test_a_pair_that_does_not_fit_is_marked_and_can_still_be_chosen() -> None:
    offer = Offer("huge", "Huge", "too much", 1, 64_000_000_000, 8_000_000_000)
    app, shelf, _ = first_run(FakeShelf((offer,)))
    async with app.run_test() as pilot:
        card = app.screen.query_one(PairCard)
        assert not offer.fits
        assert any(span.style == "$text-warning" for span in card.render().spans)  # type: ignore[union-attr]
        await pilot.press("enter")
        await begun(pilot, shelf)
        assert screen_of(app).fetching
        shelf.release.set()
