"""Prompts by kind of text, written for this benchmark, and how long their answers are.

The lengths are those of answers as people get them, cut where they only go on as before: a run with all kinds takes
less than half an hour on two slow cores. Where code is written or edited the whole file fits, since that is what a
user waits for, and code repeats itself only after a while.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.experiments.bench_texts import FERRY, MARKET, NOTICE, WORKSHOP


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of text."""

    tokens: int
    """Most tokens of an answer."""
    prompts: tuple[str, ...]


def _edit(task: str) -> str:
    return f"{task} Change nothing else. Answer with the whole file.\n\n```python\n{WORKSHOP}```"


KINDS: Mapping[str, Kind] = {
    "chat": Kind(
        128,
        (
            "My neighbour gave me twelve kilos of plums. What can I do with them this weekend without much work?",
            "I start a new job on Monday and I am nervous. How do I get through the first week well?",
        ),
    ),
    "writing": Kind(
        128,
        (
            "Write the beginning of a story in which a clockmaker repairs a clock that runs backwards.",
            "Describe a harbour on the first morning of winter, in the present tense, without the word cold.",
        ),
    ),
    "reasoning": Kind(
        192,
        (
            "Five people sit in a row. Eva sits left of Tom, Tom left of Ida, Max right of Ida, and Leo between Eva "
            "and Tom. Who sits in the middle? Explain each step.",
            "A shop raises a price by 20 per cent and then lowers it by 20 per cent. Is the price the same as before? "
            "Argue first in words, then with an example.",
        ),
    ),
    "maths": Kind(
        192,
        (
            "A tank holds 900 litres. One tap fills it in 6 hours, another in 9. How long do both take together, and "
            "how much does each bring? Show every step.",
            "Solve the system 3x + 2y = 19 and 5x - 4y = 17. Show every step, then check the solution.",
        ),
    ),
    "coding": Kind(
        448,
        (
            "Write a Python function that merges overlapping intervals given as pairs, then tests for it with pytest.",
            "Write tests with pytest for this module: one for each method and one for each error. Answer with the test "
            f"file alone.\n\n```python\n{WORKSHOP}```",
        ),
    ),
    "editing": Kind(
        720,
        (
            _edit(
                "Give class `Job` a method `cancel` that clears its parts and minutes, and raises JobError if it is "
                "finished."
            ),
            _edit(
                "Let `export` write a first row with the names of the columns, and return the number of jobs written."
            ),
        ),
    ),
    "summarizing": Kind(
        192,
        (
            "Summarize this text in five bullet points. Give one sentence from the text, word for word and in "
            f"quotation marks, with each.\n\n{FERRY}",
            "What does this text say about money? Quote every sentence that names a price or a cost, then sum them up "
            f"in one sentence.\n\n{FERRY}",
        ),
    ),
    "translation": Kind(
        128,
        (
            f"Translate this text into German:\n\n{MARKET}",
            f"Translate this notice into French:\n\n{NOTICE}",
        ),
    ),
}
"""In the order in which they are run."""
