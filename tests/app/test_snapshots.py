"""What the window looks like; each docstring says what the eye should see.  `make snapshots` takes them anew."""

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from app.screens.chat import ChatScreen
from app.tui import ChatApp
from engine.config import Speculation
from engine.errors import HostDied
from engine.events import Loaded, Loading
from tests.app.fakes_shelf import FakeShelf, chat_app, setup, until
from tests.fakes_client import LOADED, FakeClient, FakeEngine, finished, one_round, reading, tokens

SIZES = [(80, 24), (200, 60)]
Compare = Callable[..., bool]
Step = Callable[[Pilot[None]], Awaitable[None]]

QUESTION = "How do I read a file line by line in Python?\nPlease be brief."
ANSWER = """Open it in a `with` block and **loop** over it:

```python
with open("notes.txt", encoding="utf-8") as file:
    for line in file:
        print(line.rstrip())
```

1. The file is closed at the end of the block.
2. Lines come one at a time, so *large* files are fine.

| mode | means |
|------|-------|
| `r`  | read  |
| `a`  | append |
"""


async def ready(pilot: Pilot[None]) -> ChatScreen:
    await until(pilot, lambda: isinstance(pilot.app.screen, ChatScreen) and pilot.app.screen.state != "loading")
    screen = pilot.app.screen
    assert isinstance(screen, ChatScreen)
    return screen


def asking(engine: FakeEngine, *steps: Step) -> Step:
    """Ask the question, then do the steps."""

    async def run(pilot: Pilot[None]) -> None:
        screen = await ready(pilot)
        screen.prompt.text = QUESTION
        await pilot.press("enter")
        await until(pilot, lambda: engine.client.requests)
        for step in steps:
            await step(pilot)
        for _ in range(5):
            await pilot.pause()

    return run


def sends(engine: FakeEngine, *events: object, until_state: str = "writing") -> Step:
    """Release events and wait until they are on the screen."""

    async def run(pilot: Pilot[None]) -> None:
        screen = await ready(pilot)
        engine.client.send(*events)  # type: ignore[arg-type]
        await until(pilot, lambda: screen.state == until_state and (screen.status.live or screen.status.progress))

    return run


@pytest.mark.parametrize("size", SIZES)
def test_snapshot_idle(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The name in the middle, the pair at the top right, the mode badge, an empty prompt with the focus."""
    app, _ = chat_app()

    async def run(pilot: Pilot[None]) -> None:
        await ready(pilot)

    assert snap_compare(app, terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", SIZES)
def test_snapshot_reading(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The question with a coloured edge; a bar at a quarter in the second line of figures."""
    app, engine = chat_app()
    steps = asking(engine, sends(engine, reading(512, 2048, reused=128)))
    assert snap_compare(app, terminal_size=size, run_before=steps)


@pytest.mark.parametrize("size", SIZES)
def test_snapshot_streaming(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Half an answer, code coloured; speed, acceptance, tokens a round, source and context in the figures; Stop lit."""
    app, engine = chat_app()
    rounds = [
        one_round(source="model", plan="draft model up to 5: +48 %; lookup: no match of 3 or more in 812 tokens")
    ] * 3
    steps = asking(engine, sends(engine, reading(812, 812, reused=790), tokens(ANSWER[:160]), *rounds))
    assert snap_compare(app, terminal_size=size, run_before=steps)


@pytest.mark.parametrize("size", SIZES)
def test_snapshot_finished(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The whole answer with list and table, one dim line of figures below it, the prompt empty."""
    app, engine = chat_app()
    steps = asking(engine, sends(engine, tokens(ANSWER), one_round(), finished(ANSWER), until_state="ready"))
    assert snap_compare(app, terminal_size=size, run_before=steps)


@pytest.mark.parametrize("size", SIZES)
def test_snapshot_context_full(snap_compare: Compare, size: tuple[int, int]) -> None:
    """A line in the warning colour above the last question; the quiet note below its answer; a meter nearly full."""
    app, engine = chat_app()
    note = "the context of 8,192 tokens is full: the model no longer sees the first turn"

    async def again(pilot: Pilot[None]) -> None:
        screen = await ready(pilot)
        screen.prompt.text = "And by words?"
        await pilot.press("enter")
        await until(pilot, lambda: len(engine.client.requests) == 2)

    first = sends(engine, tokens("So."), one_round(), finished("So.", ids=[1]), until_state="ready")
    rest = finished("Like so.", ids=[2], forgotten=2, notes=[note])
    second = sends(engine, tokens("Like so."), one_round(context=7900), rest, until_state="ready")
    assert snap_compare(app, terminal_size=size, run_before=asking(engine, first, again, second))


@pytest.mark.parametrize("size", SIZES)
def test_snapshot_first_run(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Two cards, the first lit: title, what it is for, size and need of memory."""
    app = ChatApp(setup(FakeEngine(), FakeShelf()))
    assert snap_compare(app, terminal_size=size)


def test_snapshot_first_run_fetching(snap_compare: Compare) -> None:
    """The cards dimmed, a bar at one half below them, Cancel lit."""
    shelf = FakeShelf()
    app = ChatApp(setup(FakeEngine(), shelf))

    async def run(pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        await until(pilot, lambda: "500 MB" in str(pilot.app.screen.bar.render()))  # type: ignore[attr-defined]

    assert snap_compare(app, run_before=run)


def test_snapshot_loading(snap_compare: Compare) -> None:
    """A bar at two fifths in the second line of figures, no pair at the top right yet."""
    client = FakeClient([Loading(what="target", share=0.4), LOADED])
    client.gate.clear()
    app, _ = chat_app(client)

    async def run(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "40 %" in str(pilot.app.screen.status.render()))  # type: ignore[attr-defined]

    assert snap_compare(app, run_before=run)


def test_snapshot_draft_refused(snap_compare: Compare) -> None:
    """The target alone at the top right; a quiet note with a thin edge."""
    note = "the draft is not used: its token 17 is ' the', the target's is ' a'; take a draft of the same family"
    app, _ = chat_app(FakeClient([Loaded(target="big-model", draft=None, n_ctx=4096, device="cpu", notes=[note])]))

    async def run(pilot: Pilot[None]) -> None:
        await ready(pilot)

    assert snap_compare(app, run_before=run)


def test_snapshot_engine_died(snap_compare: Compare) -> None:
    """The half answer flagged in the warning colour; one red line that says why; F5 at the bottom."""
    app, engine = chat_app()
    died = HostDied("the engine died (SIGKILL): out of memory; start it again")
    steps = asking(engine, sends(engine, tokens(ANSWER[:40]), one_round()), sends(engine, died, until_state="dead"))
    assert snap_compare(app, run_before=steps)


def test_snapshot_light_and_fixed(snap_compare: Compare) -> None:
    """The light theme; the badge says fixed 3."""
    app, engine = chat_app()

    async def lighten(pilot: Pilot[None]) -> None:
        pilot.app.theme = "paceline-light"
        await pilot.press("f2", "f2")

    fixed = one_round(speculation=Speculation(mode="fixed", length=3))
    steps = asking(engine, sends(engine, tokens(ANSWER[:60]), fixed), lighten)
    assert snap_compare(app, run_before=steps)
