"""The record of one answer, in the shape that `--json` prints, and what its figures mean.

drafted: tokens really sent to the target as drafts (no padding).  accepted: those kept, never the target's own.
acceptance_rate = accepted / drafted.  acceptance_per_test = accepted / (accepted + refusals), a refusal being the
one token at which a round stopped.  by_position[i] = accepted at i / drafted at i.  mean_tokens_per_round =
emitted / rounds, plain rounds included.  decode_tps = (emitted - tokens of the first round) / (end of the last
round - end of the first round).  prompt_tps counts tokens read, not reused.  An undefined figure is None.
"""

from typing import Literal

from engine.config import Exactness, Frozen, Mode, Rule

Finish = Literal["stop", "length", "context_full", "cancelled"]
StopKind = Literal["eos", "string"]
Source = Literal["lookup", "model", "exit"]
"""Whose drafts: copied from the conversation, a draft model's, the target's own first layers'."""
EngineName = Literal["llamacpp", "torch", "demo"]
HeldAs = Literal["f16", "bf16", "f32", "q8_0", "q4_0"]
"""How any engine holds keys and values."""


class Settings(Frozen, frozen=True, kw_only=True):
    """What the answer was made with."""

    seed: int
    temperature: float
    exact: Exactness
    engine: EngineName
    """What ran the target."""
    weights: str | None
    """How the torch engine held them; None: as the file does."""
    kv: HeldAs
    flash_attention: Literal["on", "off"]
    threads: int
    device: str
    n_ctx: int


class Receipt(Frozen, frozen=True, kw_only=True):
    """Prompt tokens that one model found in its cache, and those it read."""

    reused: int = 0
    read: int = 0


class CacheReceipts(Frozen, frozen=True, kw_only=True):
    """The receipts of both models; draft is None where there is no draft model."""

    prompt_tokens: int
    target: Receipt
    draft: Receipt | None


class Timings(Frozen, frozen=True, kw_only=True):
    """Seconds and tokens per second; see the module for the definitions."""

    load_s: float
    ttft_s: float | None
    prompt_s: float
    prompt_tps: float | None
    decode_s: float | None
    decode_tps: float | None


class SourceCount(Frozen, frozen=True, kw_only=True):
    """Drafts of one source."""

    drafted: int = 0
    accepted: int = 0


class SpeculationStats(Frozen, frozen=True, kw_only=True):
    """What drafting did in one answer."""

    mode: Mode
    length: int | None
    width_limit: int | None
    """Most tokens that one verifying pass may hold in strict exactness; None: any."""
    rule: Rule
    rounds: int
    drafted: int
    accepted: int
    acceptance_rate: float | None
    acceptance_per_test: float | None
    mean_tokens_per_round: float | None
    by_source: dict[str, SourceCount]
    by_position: list[float | None]
    plan: str
    """What was drafted in how many rounds, and why the rest was not."""
    needed: float | None = None
    """The least acceptance per test at which the source that the plan is about pays; None: it cannot, or nothing is."""
    observed: float | None = None
    """The acceptance per test that was expected of it at the end."""
    expected_gain: float | None = None
    """Mean of what rounds with drafts were expected to gain over plain ones, as a share; None where none had any."""
    saved_ms: float | None = None
    """Milliseconds that drafting won, or lost where below 0: what single passes would have taken for the same tokens,
    by their cost as it was known in each round, less what the rounds took; None where that cost is unknown."""


class Verdict(Frozen, frozen=True, kw_only=True):
    """How sure it is that a greedy answer is the target's own."""

    kind: Literal["identical", "clear", "near_ties", "unmeasured", "not_greedy"]
    """identical: single passes wrote it, or passes that equal them bit for bit.  clear: no token that a wide pass had a
    part in led by less than `threshold`; near_ties: some did.  unmeasured: no threshold is known, or the cache holds
    what moved up when the oldest turns left a full context."""
    threshold: float | None = None
    """The most that a wide pass was seen to change the lead of the first token over the second, in logits."""
    near_ties: list[int] = []
    """Where in `ids` they are; from its end on, in the tokens that ended the answer."""


class Answer(Frozen, frozen=True, kw_only=True):
    """One answer with everything known about it: the JSON of `paceline ask --json`."""

    text: str
    ids: list[int]
    finish_reason: Finish
    stop_kind: StopKind | None
    target: str
    draft: str | None
    settings: Settings
    cache: CacheReceipts
    timings: Timings
    speculation: SpeculationStats
    verdict: Verdict
    replaces: int = 0
    """Where it goes on from a half answer: how many last characters of that its text takes the place of, since one was
    not whole, or a stop string began there."""
    opening: str = ""
    """The tag by which the prompt opened a thought, in which the text begins; empty: none."""
    forgotten: int = 0
    """Messages after the system prompt that the model no longer sees, because the context is full."""
    notes: list[str] = []
    """Sentences for the user: a clamped length, a refused draft."""
