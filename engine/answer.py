"""One answer in the making: rounds of ids become text, a stop string cuts, and the record is filled in.

What the user was shown, `ids` and the context always agree: a cut by a stop string is undone in the context too.
"""

import secrets
from collections.abc import Iterator, Sequence
from typing import Literal

from engine.config import Request, Rule, Speculation
from engine.context import Context
from engine.costs import FLAT
from engine.detokenize import TextStream
from engine.events import Origin, Reading, Round, Tokens, TokenTrace
from engine.experience import Experience
from engine.forget import Prompt
from engine.generate import CatchingUp, Clock, DraftFailed, RoundDone
from engine.pair import OFF, Pair
from engine.planner import Planner
from engine.stats import Answer, CacheReceipts, Finish, Settings, StopKind, Verdict
from engine.tally import Tally, receipt
from engine.thoughts import opening
from engine.trace import Seen, Trace
from engine.verdict import Leads


class Run:
    """The state of one answer; `finish` is set once it is known how it ended."""

    def __init__(
        self,
        pair: Pair,
        context: Context,
        experience: Experience,
        request: Request,
        prompt: Prompt,
        clock: Clock,
    ) -> None:
        self.request, self.prompt = request, prompt
        seed = request.sampling.seed
        self.seed = secrets.randbits(32) if seed is None else seed
        self.rule: Rule = request.speculation.rule_for(request.sampling.seed)
        asked = request.speculation if pair.can_draft else Speculation(mode="off")
        self.planner = Planner(asked, experience, pair.width_limit, pair.target.reach, request.sampling.greedy)
        self.finish: Finish | None = None
        self._pair, self._context, self._clock = pair, context, clock
        self._costs = experience.costs
        self._stop_kind: StopKind | None = None
        vocab = pair.target.vocab
        self._stream = TextStream(vocab.piece, request.stop, b"".join(map(vocab.piece, prompt.beginning)))
        self._trace = Trace(vocab) if request.trace else None
        self._opening = opening(vocab, prompt.ids[: prompt.start])
        self._ids: list[int] = []
        self._leads = Leads()
        self._failures: list[str] = []
        self._tally = Tally(started=clock())
        self._held = [0] * len(context.caches)
        self._most = list(self._held)

    def begin(self, started: float) -> None:
        """The context has taken over the prompt of a request that came at `started`: note what its caches had of it."""
        self._tally.started = started
        self._held = [cache.length for cache in self._context.caches]
        self._most = list(self._held)
        self._read = self._held[0]

    def reading(self) -> Reading:
        """How far the target is in the prompt."""
        self._note_held()
        held = self._context.target.length
        self._tally.chunk(held - self._read, self._clock())
        self._read = held
        return self._reading("target", self._held[0], held, len(self.prompt.ids))

    def catching_up(self, step: CatchingUp) -> Reading:
        """How far a model is in what it lacks."""
        reused = self._held[1 if step.model == "draft" else 0]
        return self._reading(step.model, reused, step.done, step.total)

    def _reading(self, model: Literal["target", "draft"], reused: int, done: int, total: int) -> Reading:
        return Reading(model=model, reused=reused, done=done, total=total, opening=self._opening)

    def draft_failed(self, step: DraftFailed) -> None:
        """The rest of the answer is made without what failed."""
        what = "early exit" if step.source == "exit" else "the draft model"
        self._failures.append(f"{what} failed and was left out from there on: {step.reason}")

    def round(self, done: RoundDone) -> Iterator[Tokens | Round]:
        """Take in a round: its text as far as it may be shown, then its figures."""
        now = self._clock()
        self._note_held()
        first = len(self._ids)
        text, shown, looked_at = self._push(done.tokens)
        leads = done.leads[:looked_at] if self._stream.stopped else done.leads
        if done.drafted or self._context.holds_wide:
            self._leads.note(first, leads)
        plain_ms = self._plain_ms(done, len(leads))
        self._tally.round(done, now, plain_ms)
        origins: list[Origin] = [*done.sources[: done.accepted], "target"]
        del origins[shown:]
        self._ids.extend(done.tokens[:shown])
        if done.end and not self.finish:
            self.finish, self._stop_kind = ("stop", "eos") if done.end == "eos" else (done.end, None)
        told = self._told(text, origins, done.seen[:shown])
        yield Tokens(text=text, ids=done.tokens[:shown], origins=origins, trace=told)
        yield self._figures(done, shown, plain_ms)

    def _plain_ms(self, done: RoundDone, passes: int) -> float | None:
        """What a round would have taken in as many single passes, by what these cost now; None: unknown."""
        if done.plain:
            return 1000 * done.seconds
        if self._pair.costs is FLAT:
            return None
        return passes * self._costs.target(1, len(self._context.ids) - len(done.tokens))

    def _told(self, text: str, origins: Sequence[Origin] = (), seen: Sequence[Seen] = ()) -> list[TokenTrace]:
        """What is to be told of tokens, these among them, now that `text` was shown."""
        if self._trace is None:
            return []
        self._trace.add(origins, seen)
        return self._trace.tell(text, self._stream)

    def _note_held(self) -> None:
        """How much of the prompt each cache has held, before any cut."""
        held = (cache.length for cache in self._context.caches)
        self._most = [max(most, now) for most, now in zip(self._most, held, strict=True)]

    def _push(self, tokens: Sequence[int]) -> tuple[str, int, int]:
        """Text that may be shown after these tokens, how many are not past a stop string, and how many decided that."""
        text = ""
        for looked_at, token in enumerate(tokens, 1):
            text += self._stream.push(token)
            if self._stream.stopped:
                self.finish, self._stop_kind = "stop", "string"
                # a stop may reach back over tokens of earlier rounds
                del self._ids[self._stream.kept :]
                return text, max(0, self._stream.kept - len(self._ids)), looked_at
        return text, len(tokens), len(tokens)

    def _figures(self, done: RoundDone, shown: int, plain_ms: float | None) -> Round:
        about = self._tally.reasons.about
        return Round(
            source=done.source,
            drafted=done.drafted,
            accepted=done.accepted,
            emitted=shown,
            ms=done.seconds * 1000,
            context=len(self.prompt.ids) + len(self._ids),
            plan=done.reason.text,
            speculation=done.speculation,
            plain_ms=plain_ms,
            needed=about.needed,
            observed=about.observed,
        )

    def end(self, finish: Finish) -> Iterator[Tokens]:
        """Bring the context to rest behind what is kept, and show what was held back."""
        self.finish = finish
        self._context.settle(len(self.prompt.ids) + len(self._ids))
        if self._stop_kind != "eos":
            self._context.rest()
        rest = self._stream.finish()
        told = self._told(rest)
        if rest or told:
            yield Tokens(text=rest, ids=[], origins=[], trace=told)

    def answer(self) -> Answer:
        """The record; call it last."""
        pair, emitted = self._pair, len(self._ids)
        return Answer(
            text=self._stream.text,
            ids=self._ids,
            finish_reason=self.finish or "cancelled",
            stop_kind=self._stop_kind,
            target=pair.target_name,
            draft=pair.draft_name,
            settings=self._settings(),
            cache=self._receipts(),
            timings=self._tally.timings(pair.load_s, emitted),
            speculation=self._tally.speculation(self.planner, pair.width_limit, self.rule, emitted),
            verdict=self._verdict(),
            replaces=self._stream.replaces,
            opening=self._opening,
            forgotten=self.prompt.forgotten,
            notes=self._notes(),
        )

    def _settings(self) -> Settings:
        pair = self._pair
        return Settings(
            seed=self.seed,
            temperature=self.request.sampling.temperature,
            exact=pair.exact,
            engine=pair.engine,
            weights=pair.weights,
            kv=pair.kv,
            flash_attention=pair.flash_attention,
            threads=pair.threads,
            device=pair.device,
            n_ctx=pair.target.n_ctx,
        )

    def _receipts(self) -> CacheReceipts:
        receipts = [receipt(len(self.prompt.ids), had, most) for had, most in zip(self._held, self._most, strict=True)]
        return CacheReceipts(
            prompt_tokens=len(self.prompt.ids), target=receipts[0], draft=receipts[1] if len(receipts) > 1 else None
        )

    def _verdict(self) -> Verdict:
        if not self.request.sampling.greedy:
            return Verdict(kind="not_greedy")
        if self._context.holds_moved:
            return Verdict(kind="unmeasured")
        if self._pair.exact == "strict" or not self._leads:
            return Verdict(kind="identical")
        return self._leads.verdict(self._pair.change, self.request.sampling)

    def _notes(self) -> list[str]:
        notes = list(self._failures)
        asked = self.planner.speculation.length
        limit = self._pair.width_limit
        if asked is not None and limit == 1:
            notes.append("nothing was drafted: with strict exactness no wider pass equals a single one here")
        elif asked is not None and limit is not None and asked > limit - 1:
            notes.append(
                f"drafts of {asked} were cut to {limit - 1}: with strict exactness a pass may hold {limit} tokens here"
            )
        elif asked is not None and asked != self.planner.length:
            cut = self.planner.length
            notes.append(f"drafts of {asked} were cut to {cut}: the target's cache can take back no more")
        if note := self.prompt.note(self._pair.target.n_ctx):
            notes.append(note)
        if not self._pair.can_draft and self.request.speculation.mode != "off":
            notes.append(f"speculation is {OFF}")
        return notes
