"""The more one chats the faster it gets: ten related conversations, each new, with a library of earlier answers.

Two engines take turns on the same prompts, greedy: one with speculation off, one in auto with a library that begins
empty.  Prints each conversation's speed relative to off, and that of the last three to that of the first three.
Run: PACELINE_TEST_TARGET=... [PACELINE_TEST_DRAFT=...] python tests/bench/ten_conversations.py [tokens]
"""

import statistics
import sys
import tempfile
from pathlib import Path

from common import ask, engine, header, model_path, spec

TASKS = (
    "a table `customers` with id, name, email and city",
    "a table `orders` with id, customer_id, day and total",
    "a table `products` with id, name, price and stock",
    "a table `suppliers` with id, name, email and phone",
    "a table `invoices` with id, order_id, day and total",
    "a table `employees` with id, name, email and salary",
    "a table `projects` with id, name, start and budget",
    "a table `rooms` with id, name, floor and seats",
    "a table `bookings` with id, room_id, day and hours",
    "a table `courses` with id, name, teacher and price",
)
QUESTION = (
    "Write a Python module with sqlite3 for {}: a function that creates the table, and functions that add, get, list, "
    "update and delete a row. Answer with code only."
)


def main(tokens: int = 300) -> None:
    """Ten conversations."""
    header(f"ten related conversations, {tokens} tokens each")
    draft = None
    with tempfile.TemporaryDirectory() as folder:
        learning = engine(model_path("TARGET"), draft, n_ctx=2048, library=Path(folder))
        plain = engine(model_path("TARGET"), draft, n_ctx=2048)
        gains = []
        for number, task in enumerate(TASKS):
            question = QUESTION.format(task)
            for one in (learning, plain):
                ask(one, question, max_tokens=1)
            sides = [
                lambda q=question: ask(learning, q, speculation=spec("auto"), max_tokens=tokens),
                lambda q=question: ask(plain, q, max_tokens=tokens),
            ]
            order = (0, 1) if number % 2 == 0 else (1, 0)
            answers = {side: sides[side]() for side in order}
            auto, off = answers[0], answers[1]
            gains.append((auto.timings.decode_tps or 0) / (off.timings.decode_tps or 1))
            spec_ = auto.speculation
            print(
                f"{number + 1}: auto / off {gains[-1]:.2f}, same text {auto.ids == off.ids}, kept "
                f"{spec_.accepted}/{spec_.drafted}; {spec_.plan}",
                flush=True,
            )
        first, last = statistics.median(gains[:3]), statistics.median(gains[-3:])
        print(f"last three {last:.2f}, first three {first:.2f}: {last / first:.2f} times")
        learning.close()
        plain.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
