"""The text on which models are measured: prose, code, data and lists, so that easy and hard tokens both occur."""

from engine.model import Vocabulary

TEXT = """The harbour wakes before the town does. By half past four the first boats are back, low in the water, and
the men on the quay speak in short sentences because the cold makes long ones expensive. Anna, who keeps the ice house,
counts the crates twice: once for the owner and once for herself. "Forty-one," she says, "not forty," and nobody
argues, since she has been right on every morning that anyone can remember.

```python
from dataclasses import dataclass


@dataclass(frozen=True)
class Crate:
    number: int
    kind: str
    weight: float


def heaviest(crates: list[Crate], kind: str) -> Crate | None:
    \"\"\"Return the heaviest crate of one kind, or None if there is none.\"\"\"
    found = [crate for crate in crates if crate.kind == kind]
    return max(found, key=lambda crate: crate.weight, default=None)


def total(crates: list[Crate]) -> dict[str, float]:
    result: dict[str, float] = {}
    for crate in crates:
        result[crate.kind] = result.get(crate.kind, 0.0) + crate.weight
    return result
```

The function returns None when no crate of that kind exists; the caller has to decide what an empty quay means.

| day | boats | crates | price per kilo |
|-----|-------|--------|----------------|
| Mon | 7     | 41     | 3.20           |
| Tue | 5     | 29     | 3.45           |
| Wed | 9     | 63     | 2.95           |

{"harbour": "north", "open": true, "depth_m": 6.4, "berths": [12, 14, 15], "contact": {"name": "Anna", "phone": null}}

Three things to do today:
1. Repair the scale, which shows 200 grams with nothing on it.
2. Ask the ministry (again!) why the permit of 1987 has never been renewed.
3. Paint the door. Blue, not green: green is for the pilots.

Wer im Winter fährt, braucht zwei Dinge, einen warmen Mantel und einen Grund. En été, on n'a besoin que du second.
SELECT kind, SUM(weight) FROM crates WHERE day = 'Wed' GROUP BY kind ORDER BY 2 DESC LIMIT 5;
If x^2 - 5x + 6 = 0, then (x - 2)(x - 3) = 0, so x = 2 or x = 3; the sum of the roots is 5 and their product is 6.
"""


def sample_ids(vocab: Vocabulary, count: int) -> list[int]:
    """`count` ids of the text, begun anew as often as needed; any ids at all where a vocabulary cannot spell it."""
    ids = vocab.tokenize(TEXT) or [token for token in range(vocab.size) if vocab.piece(token)] or [0]
    return [ids[place % len(ids)] for place in range(count)]
