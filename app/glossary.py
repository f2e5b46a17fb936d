"""The words of the program in plain language: one place for the help screen and for what hovers over a figure."""

from collections.abc import Mapping
from typing import Literal

Term = Literal["speed", "speculation", "acceptance", "origin", "plan", "context", "receipt", "verdict", "counts"]

TERMS: Mapping[Term, str] = {
    "speculation": (
        "A quick draft guesses the next few words; the large model, the target, checks all of them at once. What it "
        "would not have written is thrown away, so the text is the target's own. Only the speed changes."
    ),
    "acceptance": (
        "How much of what was drafted the target kept. Later places of a draft are kept more seldom. Tokens a round is "
        "what one check brings: 1 without drafts. Read the two together."
    ),
    "origin": (
        "Where the words came from: copied from the conversation (lookup), guessed by the draft model or by the "
        "target's first layers (early exit), or the target's own."
    ),
    "plan": (
        "Before each round the program weighs whether drafting pays here, and says why. The mark is the acceptance "
        "that it needs, the bar what it has. Won or lost is against the same tokens one by one."
    ),
    "receipt": (
        "What was reused is not read again: each turn reads only what is new. The receipt counts both, for each model."
    ),
    "context": (
        "How much of the conversation the model can see at once. When it is full, the oldest turns leave its sight; "
        "they stay on your screen."
    ),
    "verdict": (
        "At temperature 0, how sure it is that the text is exactly the target's own: identical, clear, or so many near "
        "ties, where the first two choices were too close to tell. Above 0 each text is a draw."
    ),
    "speed": (
        "A token is a piece of a word. Tokens a second leave out loading, reading and the first round; the wait until "
        "the first token is told apart."
    ),
    "counts": "This answer, this conversation with these models, and all since the program was started.",
}
"""What each means, in the order of the help screen."""
