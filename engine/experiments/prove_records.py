"""What a proof of losslessness tells: its tests one by one, how far it is, and the verdict.

p-values are named by what they are about: "token 1" is the first token of an answer, "token 2" the second given the
first, and so on; "kept" is how often the first draft was kept.
"""

from typing import Literal

from engine.config import Frozen, Rule

LEVEL = 0.001
"""The chance that an engine without fault fails in any of the tests."""
DraftKind = Literal["lookup", "model", "stand-in"]


class Working(Frozen, frozen=True, kw_only=True):
    """What is being done, and the share of the whole that is done, 0 to 1."""

    what: str
    share: float


class Counted(Frozen, frozen=True, kw_only=True):
    """One setting, rule and drafter, counted against the target's own rows."""

    setting: str
    rule: Rule
    draft: DraftKind
    length: int
    """Drafted tokens a round."""
    rounds: int
    """Answers, each of `length` + 1 tokens from one prompt, with a seed each."""
    kept: float
    """Share of first drafts that were kept."""
    kept_expected: float
    """What it is for this rule and these rows (DESIGN 3.3)."""
    impossible: int
    """Emitted tokens that the target cannot emit: one is a failure."""
    p_values: dict[str, float | None]
    """None where nothing could be compared: all but one outcome are too rare."""
    passed: bool


class Difference(Frozen, frozen=True, kw_only=True):
    """Where two texts part."""

    prompt: str
    token: int
    """The first token that differs, from 1."""
    off: str
    """What follows there with speculation off, and with it on."""
    on: str


class Compared(Frozen, frozen=True, kw_only=True):
    """One way to draft, compared as text with speculation off."""

    sampling: str
    mode: str
    prompts: int
    tokens: int
    equal: int
    """Answers with the very same ids and text."""
    drafted: int
    accepted: int
    difference: Difference | None
    """The first one."""
    passed: bool


class Report(Frozen, frozen=True, kw_only=True):
    """The last event: everything, and the verdict."""

    passed: bool
    target: str
    draft: str | None
    sabotage: bool
    """Whether a broken rule was put in place of the real ones, to see that it is found."""
    width_limit: int | None
    tests: int
    """p-values that were computed."""
    level: float
    """The chance that an engine without fault fails any of them."""
    threshold: float
    """The least p-value that passes: the level, shared evenly."""
    least: float | None
    """The least p-value of all."""
    counted: list[Counted]
    compared: list[Compared]
    notes: list[str]
    """Sentences for the user: what strict exactness costs, why a draft is not used."""
