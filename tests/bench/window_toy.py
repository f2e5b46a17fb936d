"""The window on a toy engine: so many tokens a second in bursts of 1 to 64, into a conversation that is there already.

`tests/bench/window.py` starts it in a terminal of its own.  What happens inside is told as lines of JSON on another
descriptor, so that the screen stays the window's.

Usage: python tests/bench/window_toy.py DESCRIPTOR RATE SECONDS KIND MESSAGES [coloured]
"""

import asyncio
import itertools
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.screens.chat import ChatScreen
from app.setup import Setup
from app.store.store import Store
from app.transcript import Entry
from app.tui import ChatApp
from app.widgets.conversation import Conversation
from engine.config import EngineConfig, Request, Speculation
from engine.events import AnswerEvent, Finished, Kept, Loaded, Loading, Origin, Resumed, Tokens, TokenTrace
from tests.app.fakes_shelf import NOWHERE, FakeShelf
from tests.fakes_client import LOADED, answer, one_round

BURST = 64
"""Most tokens at once."""
WORDS = ("a", "paceline", "rides", "ahead", "of", "the", "wind", "while", "every", "rider", "rests", "behind", "it")
TEXT_SEED = 7
ORIGINS: tuple[Origin, ...] = ("target", "lookup", "model")
CRASH = Path(tempfile.gettempdir()) / "paceline_window_toy.log"
"""Where a fault of the window's goes."""


def prose(count: int, draw: random.Random) -> str:
    """A line of so many words."""
    return " ".join(draw.choice(WORDS) for _ in range(count))


def mixed(draw: random.Random) -> Iterator[str]:
    """Headers, paragraphs, lists, code and a table, over and over."""
    for part in itertools.count(1):
        yield f"## Part {part}\n\n{prose(60, draw)}, with *some* `code` in **it**.\n\n"
        yield "".join(f"- {prose(9, draw)}\n" for _ in range(5)) + "\n"
        yield "```python\n" + "".join(f"value_{line} = compute({line}, 'x')\n" for line in range(12)) + "```\n\n"
        yield f"{prose(40, draw)}\n\n| rider | turns |\n|---|---|\n| ann | 3 |\n| bob | {part} |\n\n"


def code(draw: random.Random) -> Iterator[str]:
    """One block of code that never ends."""
    yield "```python\n"
    for line in itertools.count(1):
        yield f"value_{line} = compute({line}, '{prose(2, draw)}')\n"


def bullets(draw: random.Random) -> Iterator[str]:
    """One list that never ends."""
    while True:
        yield f"- {prose(12, draw)}\n"


KINDS = {"mixed": mixed, "code": code, "list": bullets}


def tokens_of(kind: str, count: int) -> list[str]:
    """So many tokens of about four characters."""
    pieces, characters = KINDS[kind](random.Random(TEXT_SEED)), ""
    while len(characters) < 4 * count:
        characters += "".join(itertools.islice(pieces, 50))
    return [characters[at : at + 4] for at in range(0, 4 * count, 4)]


def traced(texts: list[str], origins: list[Origin]) -> list[TokenTrace]:
    """Where each token came from."""
    return [TokenTrace(origin=origin, text=text, target=0.5) for text, origin in zip(texts, origins, strict=True)]


def conversation(messages: int) -> list[Entry]:
    """Questions and answers of ordinary length."""
    entries: list[Entry] = []
    for number in range(0, messages, 2):
        draw = random.Random(number)
        text = "".join(itertools.islice(mixed(draw), draw.randint(1, 4)))
        entries += [Entry("user", f"Question {number}: {prose(15, draw)}?"), Entry.of_answer(answer(text))]
    return entries[:messages]


class ToyClient:
    """An engine that writes at a set rate, whatever the window does."""

    def __init__(self, told: "Told", rate: float, tokens: list[str]) -> None:
        self._told, self._rate, self._tokens = told, rate, tokens
        self._stopped = False

    async def load(self, _config: EngineConfig) -> AsyncIterator[Loading | Loaded]:
        """At once."""
        yield LOADED

    async def answer(self, _request: Request) -> AsyncIterator[AnswerEvent]:
        """Bursts, each when its last token is due."""
        self._told.say("begun")
        draw, begun, at = random.Random(1), time.monotonic(), 0
        while at < len(self._tokens) and not self._stopped:
            burst = self._tokens[at : at + draw.randint(1, BURST)]
            at += len(burst)
            await asyncio.sleep(max(0.0, begun + at / self._rate - time.monotonic()))
            origins = [draw.choice(ORIGINS) for _ in burst]
            yield Tokens(text="".join(burst), ids=[1] * len(burst), origins=origins, trace=traced(burst, origins))
            yield one_round(emitted=len(burst), drafted=len(burst), accepted=len(burst) - 1, context=at)
        self._told.say("written")
        yield Finished(answer=answer("".join(self._tokens[:at]), ids=[1] * at))

    async def stop(self) -> None:
        """Write no more."""
        self._stopped = True

    async def set_speculation(self, speculation: Speculation) -> None:
        """Nothing changes."""

    async def keep(self, _folder: Path, _most: int | None = None) -> Kept:
        """Nothing is kept."""
        return Kept(bytes=0)

    async def resume(self, _folder: Path) -> Resumed:
        """Nothing was kept."""
        return Resumed(target=0, draft=None, reason="a toy")

    async def prepare(self, request: Request) -> None:
        """Nothing is read."""

    async def count(self, texts: list[str]) -> list[int]:
        """Four characters each."""
        return [len(text) // 4 for text in texts]

    async def memory(self) -> int:
        """None."""
        return 0

    async def close(self) -> None:
        """Write no more."""
        self._stopped = True


class Told:
    """What the window says of itself: a word, the time, the seconds of CPU and the memory that it has taken."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, what: str) -> None:
        """One line."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        line = {
            "what": what,
            "time": time.monotonic(),
            "cpu": used.ru_utime + used.ru_stime,
            "rss": pages * resource.getpagesize(),
        }
        os.write(self._descriptor, (json.dumps(line) + "\n").encode())


class Window(ChatApp):
    """The real window, opened on a conversation."""

    def __init__(self, told: Told, client: ToyClient, entries: list[Entry], coloured: bool, store: Store) -> None:
        async def start(_log: Path) -> ToyClient:
            return client

        shelf = FakeShelf(installed=True)
        super().__init__(Setup(shelf=shelf, log=NOWHERE, crash_log=CRASH, start=start, store=lambda: store))
        self._told, self._entries, self._coloured = told, entries, coloured

    async def on_ready(self) -> None:
        """Show the conversation; say so when it is there, and again when an answer is."""
        while not (isinstance(self.screen, ChatScreen) and self.screen.state == "ready"):
            await asyncio.sleep(0.01)
        self._told.say("loaded")
        view = self.screen.query_one(Conversation)
        view.coloured = self._coloured
        await view.show(self._entries)
        self._told.say("shown")
        self.run_worker(self._watch(self.screen))

    async def _watch(self, screen: ChatScreen) -> None:
        before = screen.state
        while True:
            await asyncio.sleep(0.01)
            if screen.state != before and screen.state == "ready":
                await asyncio.sleep(0.3)
                self._told.say("finished")
            before = screen.state


def main() -> None:
    """Open the window."""
    descriptor, rate, seconds, kind, messages, *coloured = sys.argv[1:]
    told = Told(int(descriptor))
    tokens = tokens_of(kind, round(float(rate) * float(seconds)))
    with tempfile.TemporaryDirectory() as folder:  # as in real life, conversations are in a file
        store = Store.open(Path(folder) / "conversations.db")
        Window(told, ToyClient(told, float(rate), tokens), conversation(int(messages)), bool(coloured), store).run()


if __name__ == "__main__":
    main()
