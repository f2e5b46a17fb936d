"""What is tried, and on what: prompts of each kind of text that people ask for, other than the benchmark's.

No answer that acceptance is measured on says which tokens are kept, or cutting them would look better than it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.backends.llamacpp_quantize import Weights
from engine.experiments.bench_prompts import KINDS

PROMPTS = (
    "What should I look at when I buy a used bicycle?",
    "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    "Anna is older than Ben, Carl is younger than Ben, and Dora is older than Anna. Order them by age and explain.",
    "A train leaves at 9:40 and arrives at 13:05 after 240 km. What is its average speed? Show the steps.",
    "Write a Python function that returns the longest common prefix of a list of strings, with tests.",
    "Write a Python class for an LRU cache with get and put in constant time. Explain it briefly.",
    "Add type hints and docstrings to this function. Answer with the whole of it.\n\n"
    "```python\ndef price(lines, rate):\n    total = sum(cost * count for cost, count in lines)\n"
    "    return round(total * (1 + rate), 2)\n```",
    "Summarize this in two bullet points: The harbour of Lindvik was built in 1884 with stone from the quarry at Holm. "
    "Ships brought salt and took away timber. In 1911 the railway reached the town, and the timber trade moved inland.",
    "Translate into German: The boats come back low in the water before the town wakes.",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tried, and on what."""

    prompts: Sequence[str] = PROMPTS
    tokens: int = 96
    """Of each answer that is recorded."""
    weights: Sequence[Weights] = ("q4_0", "iq4_nl", "q8_0")
    left_out: Sequence[float] = (1 / 8, 1 / 4)
    """Shares of the layers, taken from the middle."""
    sizes: Sequence[int] = (32768, 16384)
    """Numbers of tokens."""

    @property
    def texts(self) -> list[str]:
        """Texts whose tokens are kept: these prompts and the benchmark's."""
        return [*self.prompts, *(prompt for kind in KINDS.values() for prompt in kind.prompts)]
