"""What many stored conversations cost: the list, a search, opening one, a message, an export, a purge.

Usage: python tests/bench/stored.py [CONVERSATIONS] [MESSAGES]
"""

import random
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.store.exchange import to_json
from app.store.records import Node, Tree
from app.store.store import Store, utc_now
from app.transcript import Entry
from tests.engine.host_fake import answer_of

VOCABULARY = 30_000
QUESTION, ANSWER = 30, 150
"""Words of a message."""
SEARCHES = ("w1", "w", "w77 w78", "w12345", "w2 w3 w4", "nowhere", "東京", "z")
"""A common word, all of them, two, a rare one, three common ones, none, two characters that stand in each message."""


class Writer:
    """Text whose words are as unequal as those of a language are (the k-th is 1/k as frequent)."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words = [f"w{rank}" for rank in range(1, VOCABULARY + 1)]
        self._weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
        self._sums: list[float] = []
        total = 0.0
        for weight in self._weights:
            total += weight
            self._sums.append(total)

    def text(self, count: int) -> str:
        """That many words."""
        return "東京 " + " ".join(self._chance.choices(self._words, cum_weights=self._sums, k=count))


def fill(store: Store, conversations: int, messages: int, seed: int = 1) -> None:
    """Put conversations into a store."""
    writer = Writer(seed)
    record = answer_of(list(range(1000, 1000 + ANSWER * 3 // 2)), "stop")
    for number in range(conversations):
        nodes = []
        for place in range(1, messages + 1):
            user = place % 2 == 1
            text = writer.text(QUESTION if user else ANSWER)
            entry = Entry("user", text) if user else Entry("assistant", text, record)
            nodes.append(Node(place, place - 1 or None, entry, utc_now()))
        store.plant(Tree(f"conversation {number}", "", {}, tuple(nodes), messages, titled=True))


def timed(what: str, action: Callable[[], object], times: int = 9) -> None:
    """Milliseconds: the first time, the median, the worst."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        took.append((time.perf_counter() - start) * 1000)
    print(
        f"{what:36} first {took[0]:7.1f}  median {statistics.median(took):7.1f}  worst {max(took):7.1f} ms", flush=True
    )


def measure(path: Path, conversations: int) -> None:
    """What a person waits for."""
    start = time.perf_counter()
    with closing(Store.open(path)) as store:
        store.summaries()
        print(f"opening the file and listing: {(time.perf_counter() - start) * 1000:.1f} ms")
        chance = random.Random(2)
        timed("list of 200", store.summaries)
        for text in SEARCHES:
            timed(f"search {text!r}: {len(store.search(text))} hits", lambda text=text: store.search(text))
        timed("open one", lambda: store.get(chance.randint(1, conversations)))
        timed("choose a branch", lambda: store.choose(1, 1))
        timed("add a message", lambda: store.add(1, 1, Entry("user", "w1 w2 w3")))
        timed("update an answer", lambda: store.update(2, Entry("assistant", Writer(3).text(ANSWER))), 3)
        timed("unsent text", lambda: store.set_unsent(1, "w1"))
        timed("export", lambda: to_json(store, 2), 3)
        gone = conversations * 3 // 10
        for number in range(gone):
            store.delete(conversations - number)
    measure_purge(path, gone)


def measure_purge(path: Path, gone: int) -> None:
    """How long it takes, and how long it holds who reads and writes in the same window, and in another one."""
    with closing(Store.open(path)) as store, closing(Store.open(path)) as other:
        purging = threading.Thread(target=store.purge)
        waits: dict[str, list[float]] = defaultdict(list)
        began = time.perf_counter()
        purging.start()
        while purging.is_alive():
            for what, action in (
                ("list", store.summaries),
                ("search", lambda: store.search("w12345")),
                ("open one", lambda: store.get(3)),
                ("unsent text", lambda: store.set_unsent(1, "w1")),
                ("unsent text, another window", lambda: other.set_unsent(2, "w1")),
            ):
                start = time.perf_counter()
                action()
                waits[what].append((time.perf_counter() - start) * 1000)
                time.sleep(0.01)
        print(f"purge of {gone}: {time.perf_counter() - began:.1f} s")
        for what, took in waits.items():
            line = f"median {statistics.median(took):7.1f}  worst {max(took):7.1f} ms"
            print(f"meanwhile: {what:30} {len(took)} times, {line}", flush=True)


def main() -> None:
    """Fill a file and measure it."""
    conversations, messages = (int(text) for text in (sys.argv[1:] + ["1000", "50"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.db"
        start = time.perf_counter()
        with closing(Store.open(path)) as store:
            fill(store, conversations, messages)
        took = time.perf_counter() - start
        size = path.stat().st_size / 2**20
        print(f"# {conversations} conversations of {messages} messages, {size:.0f} MiB, filled in {took:.0f} s")
        measure(path, conversations)


if __name__ == "__main__":
    main()
