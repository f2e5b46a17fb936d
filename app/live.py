"""Figures of answers while they are written, from the engine's own events: what the window shows of speculation.

Three counts are kept apart: the turn is the answer being written (a new one, written again or gone on with, begins at
zero), the chat is one conversation with one pair, the session is the whole run of the program.  No clock of the
window's takes part, but for the wait until the first token while the engine has not yet said how long it was.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.counts import Counts
from app.trend import Trend
from engine.config import Speculation
from engine.events import Reading, Round, Tokens
from engine.stats import Answer, Receipt, Source, Verdict

WINDOW_MS = 2000.0
"""How far back "now" looks."""
HOLD_MS = 1000.0
"""Least time for which a reason stands, so that it can be read."""
AUTO = Speculation()
NOTHING = Counts()


@dataclass(frozen=True)
class Reason:
    """Why it drafts as it does."""

    text: str = ""
    needed: float | None = None
    """The least acceptance per test at which drafting pays; None: unknown, or it cannot."""
    observed: float | None = None
    """The acceptance per test that is expected."""


@dataclass(frozen=True)
class Live:
    """What is shown while an answer is written, and when it is done; None is a figure that does not exist yet."""

    tps: float | None = None
    """Tokens a second: over the last rounds, of the whole answer once it is done."""
    acceptance: float | None = None
    """Accepted / drafted, likewise."""
    per_round: float | None = None
    """Tokens a round, likewise."""
    source: Source | None = None
    """Where the last draft came from."""
    context: int = 0
    """Tokens of the conversation so far."""
    plan: str = ""
    speculation: Speculation = AUTO
    """The setting in force."""
    turn: Counts = NOTHING
    chat: Counts = NOTHING
    session: Counts = NOTHING
    speeds: tuple[float, ...] = ()
    """Tokens a second from the beginning of the answer on, in steps of equal time."""
    by_position: tuple[float | None, ...] = ()
    """Accepted / drafted at each place of a draft, over the answer."""
    reason: Reason = Reason()
    """The plan with its figures, held for a while."""
    ttft_s: float | None = None
    """Seconds to the first token."""
    target: Receipt | None = None
    draft: Receipt | None = None
    """What each model reused and read of the prompt."""
    verdict: Verdict | None = None
    """How sure the last answer is."""

    def ended(self, answer: Answer) -> "Live":
        """The same for the whole answer, as the engine has it."""
        spec, cache = answer.speculation, answer.cache
        return replace(
            self,
            tps=answer.timings.decode_tps,
            acceptance=spec.acceptance_rate,
            per_round=spec.mean_tokens_per_round,
            context=cache.prompt_tokens + len(answer.ids),
            plan=spec.plan,
            turn=Counts.of_answer(answer),
            by_position=tuple(spec.by_position),
            reason=Reason(spec.plan, spec.needed, spec.observed),
            ttft_s=answer.timings.ttft_s,
            target=cache.target,
            draft=cache.draft,
            verdict=answer.verdict,
        )


class Meter:
    """Takes in the events of answers, one answer after the other."""

    def __init__(self, window_ms: float = WINDOW_MS, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_ms, self._clock = window_ms, clock
        self._chat = self._session = self._turn = Counts()
        """Chat and session are what is behind: the turn is not in them yet."""
        self._live = Live()
        self._restart()

    def _restart(self) -> None:
        self._began = self._clock()
        self._rounds: deque[Round] = deque()
        self._ms = self._held_ms = 0.0
        self._trend = Trend()
        self._positions: list[list[int]] = []

    @property
    def live(self) -> Live:
        """The figures as they stand."""
        return self._live

    def begin(self) -> Live:
        """An answer begins: a turn of its own, which the chat goes on with."""
        self._put_behind()
        before = self._live
        self._live = Live(
            context=before.context, speculation=before.speculation, chat=self._chat, session=self._session
        )
        return self._live

    def new_chat(self) -> Live:
        """Another conversation, or another pair: turn and chat begin at zero, the session goes on."""
        self._put_behind()
        self._chat = Counts()
        self._live = Live(speculation=self._live.speculation, session=self._session)
        return self._live

    def _put_behind(self) -> None:
        self._chat += self._turn
        self._session += self._turn
        self._turn = Counts()
        self._restart()

    def read(self, event: Reading) -> Live:
        """A part of the prompt is read."""
        receipt = Receipt(reused=event.reused, read=max(0, event.done - event.reused))
        if event.model == "draft":
            return self._now(self._turn, draft=receipt)
        return self._now(self._turn, target=receipt, context=event.done)

    def take(self, event: Tokens) -> Live:
        """New tokens, whose round is yet to come."""
        if not event.ids:
            return self._live
        return self._now(self._turn + Counts.of_origins(event.origins), ttft_s=self._wait())

    def _wait(self) -> float:
        return self._clock() - self._began if self._live.ttft_s is None else self._live.ttft_s

    def add(self, one: Round) -> Live:
        """Take in a round; the figures with it."""
        self._rounds.append(one)
        self._ms += one.ms
        while len(self._rounds) > 1 and self._ms - self._rounds[0].ms >= self._window_ms:
            self._ms -= self._rounds.popleft().ms
        self._trend.add(one.emitted, one.ms)
        self._place(one)
        return self._now(
            self._turn + Counts.of_round(one),
            **self._lately(),
            source=self._source(one),
            context=one.context,
            plan=one.plan,
            speculation=one.speculation,
            speeds=self._trend.speeds,
            by_position=tuple(kept / drafted for drafted, kept in self._positions),
            reason=self._reason(one),
            ttft_s=self._wait(),
        )

    def finish(self, answer: Answer) -> Live:
        """The answer is done: the engine's figures in place of those counted here."""
        self._live = self._live.ended(answer)
        return self._now(self._live.turn)

    def show(self, answer: Answer) -> Live:
        """An answer of a conversation that was opened: its figures, which no count of this run holds."""
        self._put_behind()
        fresh = Live(speculation=self._live.speculation, chat=self._chat, session=self._session)
        self._live = fresh.ended(answer)
        return self._live

    def _now(self, turn: Counts, **figures: object) -> Live:
        self._turn = turn
        sums = {"turn": turn, "chat": self._chat + turn, "session": self._session + turn}
        self._live = replace(self._live, **sums, **figures)
        return self._live

    def _lately(self) -> dict[str, float | None]:
        drafted = sum(one.drafted for one in self._rounds)
        emitted = sum(one.emitted for one in self._rounds)
        return {
            "tps": emitted / self._ms * 1000 if self._ms > 0 else None,
            "acceptance": sum(one.accepted for one in self._rounds) / drafted if drafted else None,
            "per_round": emitted / len(self._rounds),
        }

    def _source(self, one: Round) -> Source | None:
        if one.drafted:
            return one.source
        return None if one.speculation.mode == "off" else self._live.source

    def _place(self, one: Round) -> None:
        while len(self._positions) < one.drafted:
            self._positions.append([0, 0])
        for at in range(one.drafted):
            self._positions[at][0] += 1
            self._positions[at][1] += at < one.accepted

    def _reason(self, one: Round) -> Reason:
        """The one that stands, until it has stood long enough."""
        self._held_ms += one.ms
        before = self._live.reason
        if before.text and self._held_ms < HOLD_MS:
            return before
        self._held_ms = 0.0
        return Reason(one.plan, one.needed, one.observed)
