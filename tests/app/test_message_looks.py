"""What messages look like; each docstring says what the eye should see.  `make snapshots` takes them anew."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.user_message import UserMessage
from engine.events import Origin
from engine.stats import Verdict
from tests.app.fakes_trace import MessageApp, texts, token
from tests.fakes_client import answer

Compare = Callable[..., bool]
SIZES = [(80, 30), (200, 60)]
THEMES = ["paceline-dark", "paceline-light"]
QUESTION = "notes.txt:\n```txt\n[all of it]\n```\n\nHow do I read a file line by line?\nשלום, 日本語 👨‍👩‍👧 [/]"
PIECES: list[tuple[str, Origin]] = [
    ("<think>", "target"), ("\n", "target"), ("A loop is ", "model"), ("enough", "target"), (".\n", "lookup"),
    ("</think>", "target"), ("\n\n", "target"), ("Open it in a ", "model"), ("`with`", "lookup"), (" block", "exit"),
    (" and ", "model"), ("**loop**", "target"), (" over it:", "target"), ("\n\n", "lookup"), ("```python\n", "lookup"),
    ('with open("notes.txt") as file:\n', "lookup"), ("    for line in file:\n", "lookup"),
    ("        print(line.rstrip())\n", "lookup"), ("```\n\n", "target"), ("1. שלום", "target"), (" עולם\n", "target"),
    ("2. 日本", "model"), ("語", "target"), (" 👨‍👩‍👧\n", "target"),
]  # fmt: skip
TRACE = tuple(token(text, origin, refused=" loops" if text == "enough" else None) for text, origin in PIECES)


def messages(*, coloured: bool = False) -> tuple[UserMessage, AnswerMessage]:
    """A question with a file, in its second version, and a half answer with a thought."""
    verdict = Verdict(kind="near_ties", threshold=0.4, near_ties=[3])
    text = texts(TRACE)
    record = answer(text, "cancelled", ids=list(range(len(TRACE))), verdict=verdict)
    asked = Entry("user", QUESTION, id=1, version=2, versions=3, attachments=("notes.txt",))
    answered = Entry("assistant", text, record, "stopped", id=2, version=1, versions=2, trace=TRACE)
    return UserMessage(asked), AnswerMessage(answered, coloured=coloured)


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(6):
        await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_snapshot_chosen(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """A chip under the question; the thought open and indented; a corner that copies the code; actions underlined."""
    question, reply = messages()

    async def run(pilot: Pilot[None]) -> None:
        await settled(pilot)
        reply.chosen = True
        reply.focus()
        await pilot.press("t")
        await settled(pilot)

    assert snap_compare(MessageApp(question, reply, theme=theme), terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_snapshot_coloured(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """Tokens in four colours, one of them reversed with a card below it that names the draft that was refused."""
    question, reply = messages(coloured=True)

    async def run(pilot: Pilot[None]) -> None:
        await settled(pilot)
        reply.chosen = True
        reply.focus()
        await pilot.press("n")
        await settled(pilot)

    assert snap_compare(MessageApp(question, reply, theme=theme), terminal_size=size, run_before=run)


def test_snapshot_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in greys: underlined, bold, italic and reversed tell the origins, in the legend as in the text."""
    monkeypatch.setenv("NO_COLOR", "1")
    question, reply = messages(coloured=True)
    assert snap_compare(MessageApp(question, reply), terminal_size=(80, 30), run_before=settled)


def test_snapshot_under_the_mouse(snap_compare: Compare) -> None:
    """The thought folded into one line; actions beside the versions of the question, none below the answer."""
    question, reply = messages()

    async def run(pilot: Pilot[None]) -> None:
        await settled(pilot)
        await pilot.hover(".said")
        await settled(pilot)

    assert snap_compare(MessageApp(question, reply), terminal_size=(80, 30), run_before=run)
