"""The demo: a scripted pair that needs no file and takes the time that models on a small GPU would take.

It shows the window and the loop, not a language model: what it says was written by hand.
"""

import re
from collections.abc import Callable, Sequence

from engine.backends.toy import ScriptLM, ToyVocabulary
from engine.costs import Costs, DraftCost

TARGET_MS, DRAFT_MS, WIDER_MS = 28.0, 3.0, 0.6
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
COSTS = Costs(lambda width, _: TARGET_MS + WIDER_MS * (width - 1), {"model": DraftCost(DRAFT_MS)})
"""What passes of the demo's models take."""
START, END = "<|im_start|>", "<|im_end|>"
ANSWERS = (
    """Hello! I am a **scripted demo**: no model is loaded, so I say the same to everyone.

What you see is real all the same. A small *draft* proposes the next words, a larger *target* checks them in one
pass, and what it would not have written itself is thrown away:

1. the draft runs ahead by a few tokens,
2. the target looks at all of them at once,
3. the ones it agrees with stay, and it adds one of its own.

Watch the line at the bottom: tokens per second, how many drafts were accepted, and where they came from.
""",
    """Here is the rule that keeps the text the target's own, as code:

```python
def keep(target: float, draft: float, u: float) -> bool:
    \"\"\"Keep a drafted token with probability min(1, target / draft).\"\"\"
    return u < min(1.0, target / draft)
```

A refused token is replaced by one from the part of the target's distribution that the draft left uncovered. The sum
of both ways is exactly the target's distribution, so speed is all that changes.
""",
    """You can switch speculation *off*, *auto* or to a *fixed* length while I am talking: nothing is loaded again.

| mode | what it does |
|---|---|
| off | the target alone, one token a pass |
| auto | drafts when that is expected to pay |
| fixed | drafts the same number of tokens each round |

To chat with a real model, leave the demo and fetch a pair: `paceline models pull tiny` takes less than 100 MB.
""",
)


def demo_pair() -> tuple[ScriptLM, ScriptLM]:
    """Target and draft of the demo."""
    vocab = _vocabulary()
    answers = [vocab.tokenize(text) for text in ANSWERS]
    start, end = vocab.control[START], vocab.control[END]
    opening = len(vocab.tokenize("assistant\n"))

    def wanted(ids: Sequence[int]) -> int:
        turns = [i for i, token in enumerate(ids) if token == start]
        at = len(ids) - turns[-1] - 1 - opening if turns else 0
        answer = answers[(max(0, len(turns) - 2) // 2) % len(answers)]
        return answer[at] if 0 <= at < len(answer) else end

    def guessed(ids: Sequence[int]) -> int:
        right = wanted(ids)
        return right if (len(ids) * 7919 + right) % 6 else (right + 1) % 256

    target, draft = ScriptLM(vocab, wanted, 8192, 512), ScriptLM(vocab, guessed, 8192, 512)
    target.on_pass = _takes(target, TARGET_MS)
    draft.on_pass = _takes(draft, DRAFT_MS)
    return target, draft


def _takes(model: ScriptLM, ms: float) -> Callable[[Sequence[int]], None]:
    return lambda tokens: model.wait((ms + WIDER_MS * (len(tokens) - 1)) / 1000)


def _vocabulary() -> ToyVocabulary:
    words = dict.fromkeys(word for text in ANSWERS for word in re.findall(r" ?\w+|[^\w\s]+|\s+", text))
    pieces = [bytes([i]) for i in range(256)] + [word.encode() for word in words if len(word.encode()) > 1]
    control = {START: len(pieces), END: len(pieces) + 1}
    return ToyVocabulary([*pieces, b"", b""], control, eog=[control[END]], chat_template=TEMPLATE)
