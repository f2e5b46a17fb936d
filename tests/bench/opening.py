"""A window on many stored conversations: its first paint, a search as it is typed, and a conversation until its text.

Usage: python tests/bench/opening.py [CONVERSATIONS] [MESSAGES] [RUNS]
"""

import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from first_paint import paint_seconds
from stored import fill
from terminal import Terminal

from app.store.records import Node, Tree
from app.store.store import Store, utc_now
from app.transcript import Entry

TITLE, SOUGHT, SHOWN = "Zebra crossing", "quagga", "okapi"
"""A title, a word of its last message, and the last word of that message, which is in no excerpt."""
SIZE = (200, 60)
SEARCH, ENTER = "\x06", "\r"
PATIENCE_S = 20.0


def needle(messages: int) -> Tree:
    """One conversation that can be told from all others."""
    texts = [f"message {number}\n\n- a\n- b" for number in range(1, messages)]
    texts.append(f"{SOUGHT} {'then more ' * 60} {SHOWN}")
    nodes = [
        Node(place, place - 1 or None, Entry("user" if place % 2 else "assistant", text), utc_now())
        for place, text in enumerate(texts, 1)
    ]
    return Tree(TITLE, "", {}, tuple(nodes), messages, titled=True)


def until(terminal: Terminal, mark: str) -> float:
    """Milliseconds until this is drawn."""
    begun, seen, found = time.monotonic(), "", 0.0

    def hear(_seconds: float, text: str) -> None:
        nonlocal seen, found
        seen = seen[-100:] + text
        if not found and mark in seen:
            found = time.monotonic()

    terminal.heard = hear
    while not found:
        terminal.read(0.005)
        if time.monotonic() - begun > PATIENCE_S:
            raise SystemExit(f"{mark!r} was never drawn")
    return 1000 * (found - begun)


def window(home: str) -> tuple[float, float]:
    """Milliseconds from the last letter of a search to its hit, and from Enter to the text of the conversation."""
    with Terminal(home, ["--demo"], SIZE) as terminal:
        terminal.ready()
        terminal.read(1.0)
        terminal.type(SEARCH + SOUGHT[:-1])
        terminal.read(0.5)
        terminal.type(SOUGHT[-1])
        found = until(terminal, TITLE.split(maxsplit=1)[0])
        terminal.read(0.5)
        terminal.type("\x1b[B")
        terminal.read(0.3)
        terminal.type(ENTER)
        return found, until(terminal, SHOWN)


def main() -> None:
    """Fill a home, then measure in it."""
    given = sys.argv[1:]
    conversations, messages, runs = (int(text) for text in given + ["1000", "50", "5"][len(given) :])
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "data" / "conversations.db"
        path.parent.mkdir(parents=True)
        with closing(Store.open(path)) as store:
            fill(store, conversations, messages)
            store.plant(needle(messages))
        paints = [paint_seconds(home)[0] for _ in range(runs)]
        searches, openings = zip(*(window(home) for _ in range(runs)), strict=True)
    print(f"# {conversations} conversations of {messages} messages, {runs} runs: median, worst")
    for name, values in (("first paint, s", paints), ("search in the window, ms", searches), ("opening, ms", openings)):
        print(f"{name:26} {statistics.median(values):8.2f} {max(values):8.2f}")


if __name__ == "__main__":
    main()
