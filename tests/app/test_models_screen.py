"""The model screen: what is listed, fetching and the like, choosing a pair or its halves, refusals with reasons."""

import threading
from pathlib import Path

import pytest
from textual.app import App
from textual.message import Message
from textual.pilot import Pilot

from app.errors import NotEnoughMemory
from app.screens.models import ModelsScreen
from app.screens.path_dialog import PathDialog
from app.setup import DraftFit, Known, Offer
from app.themes import THEMES
from app.widgets.bar import Bar
from app.widgets.field import Field
from app.widgets.row_list import RowList
from models.errors import ModelsError
from tests.app.fakes_shelf import CONFIG, FakeShelf, until
from tests.app.fakes_sidebar import screen_lines
from tests.app.test_literal import CONTROL, MARKUP

GB = 1_000_000_000
OFFERS = (
    Offer("coder", "Qwen2.5 Coder 1.5B with 0.5B", "for work", 1_633_000_000, 3 * GB, 12 * GB, True, ("big", "small")),
    Offer("tiny", "SmolLM2 135M", "for a first try", 93_000_000, 400_000_000, 12 * GB, False, ("smol",)),
)
KNOWN = (
    Known("big", "Qwen2.5 Coder 1.5B", 1_117_000_000, "installed", "Apache-2.0", 1_117_000_000, 2 * GB, 12 * GB),
    Known("small", "Qwen2.5 Coder 0.5B", 491_000_000, "installed", "Apache-2.0", 491_000_000, GB, 12 * GB),
    Known("smol", "SmolLM2 135M", 98_400_000, "partly fetched", "Apache-2.0", 40_000_000, 400_000_000, 12 * GB),
    Known("mine", "/home/me/mine.gguf", 9 * GB, "added", None, 9 * GB, 14 * GB, 12 * GB),
)
MISFIT = DraftFit(False, "does not fit: only 12 %, which is too few; the first difference: token 17 is ' the'")


class Host(App[None]):
    """The model screen, and what it says."""

    def __init__(self, shelf: FakeShelf) -> None:
        super().__init__()
        self.animation_level = "none"
        self.models = ModelsScreen(shelf)
        self.said: list[Message] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def on_mount(self) -> None:
        self.install_screen(self.models, "models")
        self.push_screen("models")

    def on_models_screen_pair_chosen(self, event: ModelsScreen.PairChosen) -> None:
        self.said.append(event)

    def on_models_screen_unload_wanted(self, event: ModelsScreen.UnloadWanted) -> None:
        self.said.append(event)

    @property
    def said_last(self) -> str:
        """The line about what came of the last piece of work."""
        return str(self.models.query_one("#said").render())


def host() -> tuple[Host, FakeShelf]:
    shelf = FakeShelf(OFFERS, installed=True)
    shelf.known = KNOWN
    return Host(shelf), shelf


async def ready(pilot: Pilot[None], app: Host) -> RowList:
    await until(pilot, lambda: app.models._models and app.models.at)
    return app.models.query_one(RowList)


async def at(pilot: Pilot[None], app: Host, key: str) -> None:
    """Put the cursor on a row."""
    (await ready(pilot, app)).go_to(key)
    await pilot.pause()


async def test_sizes_licences_memory_and_states_are_told() -> None:
    app, _ = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        text = "\n".join(screen_lines(pilot))
        for said in (
            "12.0 GB of memory free", "Qwen2.5 Coder 1.5B with 0.5B", "1.63 GB", "needs 3.00 GB of memory", "for work",
            "93.0 MB to fetch", "not installed", "1.12 GB · Apache-2.0", "installed",
        ):  # fmt: skip
            assert said in text
        await pilot.press("end")
        await pilot.pause()
        text = "\n".join(screen_lines(pilot))
        for said in ("40.0 MB of 98.4 MB", "partly fetched", "added", "needs 14.0 GB, 12.0 GB free"):
            assert said in text


@pytest.mark.parametrize("way", ["enter", "click"])
async def test_an_installed_pair_is_chosen_with_its_config(way: str) -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        rows = await ready(pilot, app)
        await (pilot.press("enter") if way == "enter" else pilot.click(rows, offset=(5, 2)))
        await until(pilot, lambda: app.said)
        assert app.said == [ModelsScreen.PairChosen(CONFIG)]
        assert ("config", "coder") in shelf.asked


async def test_a_pair_that_cannot_be_loaded_says_why() -> None:
    app, shelf = host()
    shelf.config_error = NotEnoughMemory("512 tokens need 9 GB: close other programs")
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: app.said_last)
        assert app.said_last == "512 tokens need 9 GB: close other programs"
        assert app.said == []


async def test_target_and_draft_are_chosen_one_by_one_and_loaded() -> None:
    app, shelf = host()
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "model big")
        assert not app.models.check_action("load", ())
        await pilot.press("enter")
        await at(pilot, app, "model small")
        await pilot.press("d")
        await until(pilot, lambda: app.models._choice.draft == "small")
        assert any("fits: each token means the same in both" in line for line in screen_lines(pilot))
        await pilot.press("l")
        await until(pilot, lambda: app.said)
        assert app.said == [ModelsScreen.PairChosen(CONFIG)]
        assert ("config_of", "big", "small") in shelf.asked
        await pilot.press("d", "l")
        await until(pilot, lambda: ("config_of", "big", "none") in shelf.asked)


async def test_t_on_a_pair_takes_both_of_it() -> None:
    app, _ = host()
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "pair coder")
        await pilot.press("t")
        assert (app.models._choice.target, app.models._choice.draft) == ("big", "small")


async def test_a_draft_that_does_not_fit_is_refused_with_its_reason_and_marked() -> None:
    app, shelf = host()
    shelf.fits = {("big", "mine"): MISFIT}
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "model mine")
        await pilot.press("d")
        await until(pilot, lambda: app.said_last)
        assert app.said_last == "mine: choose a target first, then what drafts for it"
        await at(pilot, app, "model big")
        await pilot.press("t")
        await until(pilot, lambda: any("   does not fit: only 12 %" in line for line in screen_lines(pilot)))
        await at(pilot, app, "model mine")
        await pilot.press("d")
        await until(pilot, lambda: app.said_last.startswith("mine: does not fit"))
        assert app.said_last == f"mine: {MISFIT.reason}"
        assert app.models._choice.draft is None


async def test_no_two_models_are_compared_twice_and_one_pair_after_another() -> None:
    app, shelf = host()
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "model big")
        for _ in range(3):
            await pilot.press("t")
        await at(pilot, app, "model small")
        await pilot.press("d")
        await until(pilot, lambda: app.models._choice.draft == "small")
        await until(pilot, lambda: ("draft_fit", "big", "mine") in shelf.asked)
        compared = [words for words in shelf.asked if words[0] == "draft_fit"]
        assert sorted(compared) == [("draft_fit", "big", "mine"), ("draft_fit", "big", "small")]


async def test_a_comparison_that_fails_is_a_refusal_with_its_reason() -> None:
    app, shelf = host()

    def broken(target: str, draft: str) -> DraftFit:
        raise ModelsError(f"the file of {draft} is gone: put it back")

    shelf.draft_fit = broken  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "model big")
        await pilot.press("t")
        await at(pilot, app, "model small")
        await pilot.press("d")
        await until(pilot, lambda: app.said_last == "small: the file of small is gone: put it back")
        assert app.models._choice.draft is None


@pytest.mark.parametrize("key", ["pair tiny", "model smol"])
async def test_what_is_not_here_is_fetched_with_a_bar(key: str) -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, app, key)
        await pilot.press("enter")
        await until(pilot, lambda: "500 MB / 1.00 GB · 50 %" in str(app.models.query_one(Bar).render()))
        listed = shelf.asked.count(("models",))
        await pilot.press("f", "enter", "v")
        shelf.release.set()
        await until(pilot, lambda: "is here" in app.said_last)
        assert shelf.fetched == [key.split()[1]]
        await until(pilot, lambda: shelf.asked.count(("models",)) > listed)


async def test_a_fetch_is_cancelled_fails_and_goes_on_behind_the_chat() -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, app, "pair tiny")
        await pilot.press("f")
        await until(pilot, shelf.begun.is_set)
        await pilot.press("c")
        await until(pilot, lambda: "Stopped" in app.said_last)
        assert shelf.was_cancelled.is_set()
        shelf.error = ModelsError("no network: check the connection")
        shelf.release.set()
        await pilot.press("f")
        await until(pilot, lambda: "network" in app.said_last)
        assert app.models.query_one("#said").has_class("-error")
        shelf.begun.clear()
        await pilot.press("f")
        await until(pilot, shelf.begun.is_set)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not app.models)
        shelf.release.set()
        await until(pilot, lambda: shelf.fetched == ["tiny"])


async def test_quitting_stops_the_download() -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, app, "pair tiny")
        await pilot.press("f")
        await until(pilot, shelf.begun.is_set)
    assert shelf.was_cancelled.wait(10)


async def test_removing_takes_two_presses_on_the_same_row_and_not_what_is_loaded() -> None:
    app, shelf = host()
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "model mine")
        await pilot.press("x", "up", "down", "x")
        assert ("remove", "mine") not in shelf.asked
        assert app.said_last == "The same again removes mine."
        await pilot.press("delete")
        await until(pilot, lambda: ("remove", "mine") in shelf.asked)
        await until(pilot, lambda: app.said_last == "mine is removed.")
        app.models.loaded = ("big", "small")
        for key, id in (("model big", "big"), ("pair coder", "coder")):
            await at(pilot, app, key)
            await pilot.press("x", "x")
            assert app.said_last == f"{id} is loaded: unload it first"
            assert ("remove", id) not in shelf.asked


async def test_a_removed_model_is_no_choice_any_more() -> None:
    app, shelf = host()
    async with app.run_test(size=(100, 30)) as pilot:
        await at(pilot, app, "model big")
        await pilot.press("t", "x", "x")
        await until(pilot, lambda: ("remove", "big") in shelf.asked)
        assert app.models._choice.target is None


async def test_verifying() -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, app, "model big")
        shelf.release.set()
        await pilot.press("v")
        await until(pilot, lambda: app.said_last == "big is right.")
        shelf.error = ModelsError("the bytes of big are not the right ones any more")
        shelf.release.set()
        await pilot.press("v")
        await until(pilot, lambda: "not the right ones" in app.said_last)
        assert shelf.asked.count(("verify", "big")) == 2


async def test_a_file_of_ones_own_is_added_by_its_path(tmp_path: Path) -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, PathDialog))
        shelf.release.set()
        app.screen.query_one(Field).value = "~/x.gguf"
        await pilot.press("enter")
        await until(pilot, lambda: app.said_last == "Added.")
        assert ("add", "~/x.gguf") in shelf.asked


async def test_unloading_goes_with_something_loaded_which_is_marked() -> None:
    app, _ = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        await pilot.press("u")
        assert app.said == []
        app.models.loaded = ("big", "small")
        await pilot.pause()
        assert sum("loaded" in line for line in screen_lines(pilot)) == 3
        await pilot.press("u")
        await until(pilot, lambda: app.said == [ModelsScreen.UnloadWanted()])


async def test_nothing_of_the_shelf_is_asked_in_the_thread_of_the_window() -> None:
    app, shelf = host()
    async with app.run_test(size=(100, 30)) as pilot:
        shelf.release.set()
        for key, presses in (("model big", "tv"), ("model small", "d"), ("pair coder", "l"), ("model mine", "xx")):
            await at(pilot, app, key)
            await pilot.press(*presses)
        await pilot.press("home", "enter")
        await until(pilot, lambda: {words[0] for words in shelf.asked} >= {
            "models", "draft_fit", "config", "config_of", "verify",
        })  # fmt: skip
    assert threading.get_ident() not in shelf.threads


async def test_every_text_of_a_shelf_is_literal() -> None:
    texts = [*MARKUP, *CONTROL, "日本語のモデル" * 9, "\u202egnp.exe"]
    offers = tuple(Offer(f"p{n}", text, text, 1, 1, 1, True, ("big",)) for n, text in enumerate(texts))
    shelf = FakeShelf(offers, installed=True)
    shelf.known = tuple(Known(text or "x", text, 5, "added", text, 5, 9, 1) for text in texts)
    shelf.fits = {(texts[0], text): DraftFit(False, text) for text in texts}
    app = Host(shelf)
    async with app.run_test(size=(90, 140)) as pilot:
        await at(pilot, app, f"model {texts[0]}")
        await pilot.press("t")
        await until(pilot, lambda: len(app.models._choice._fits) == len(texts) - 1)
        for text in texts:
            app.models._work.say(text, error=True)
            await pilot.pause()
            shown = screen_lines(pilot)
            assert not any(letter in "".join(shown) for letter in map(chr, [*range(32), *range(127, 160), 0x202E]))
        for text in MARKUP:
            assert sum(text in line for line in screen_lines(pilot)) >= 3
        assert app.is_running


async def test_what_comes_back_while_the_window_closes_is_no_fault() -> None:
    app, shelf = host()
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot, app)
        await app.models.query("RowList, Pairing, Task, #models-title").remove()
        await app.models._read()
        shelf.config_error = NotEnoughMemory("no memory")
        await app.models._find_config(shelf.config)
        await pilot.pause()
        assert app.models.is_mounted
