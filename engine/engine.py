"""The Engine: a loaded pair that answers chats, one at a time, as a generator of events.

Closing the generator, `cancel` from another thread, and every failure leave the context consistent: what was
committed stays, what was not is rewound, and the next answer starts from there.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from engine import trace
from engine.acceptance import Learned
from engine.answer import Run
from engine.config import EngineConfig, Request, Speculation
from engine.config import Rule as RuleName
from engine.contention import Pace
from engine.context import Context
from engine.drafters import Drafter
from engine.drafters.exit import ExitDrafter
from engine.drafters.library import Library
from engine.drafters.lookup import LookupDrafter
from engine.drafters.model import ModelDrafter
from engine.errors import Interrupted, ModelError, PromptTooLong
from engine.events import AnswerEvent, Finished, Kept, Loaded, Loading, Reading, Resumed
from engine.experience import Experience
from engine.forget import Horizon, Prompt
from engine.generate import Answering, CatchingUp, Clock, DraftFailed, rounds
from engine.keeping import keep, resume, stamp_of
from engine.mapped import MappedModel
from engine.noise import Noise
from engine.pair import Pair
from engine.planner import Planner
from engine.prepare import ReadingAhead
from engine.prompt import Chat
from engine.sampler import Sampler
from engine.stats import Finish
from engine.study import Study
from engine.verify import Coupled, Generator, Rejection, Rule

Rules = Callable[[RuleName, int, int], Rule]
"""The rule of an answer from its name, the answer's seed and the length of its prompt."""


def lossless(name: RuleName, seed: int, start: int) -> Rule:
    """The two rules as they are; only a self-test runs an engine with others."""
    return Coupled(Noise(seed)) if name == "coupled" else Rejection(Generator(seed, start))


class Engine:
    """One pair, one conversation's caches, one answer at a time."""

    def __init__(
        self, pair: Pair, clock: Clock = time.perf_counter, rules: Rules = lossless, library: Library | None = None
    ) -> None:
        self.pair = pair
        self._library = library
        self._rules = rules
        self.context = Context(pair.target, pair.draft, pair.exit_layers)
        self._clock = clock
        self._chat = Chat(pair.target.vocab)
        self._horizon = Horizon(self._chat, pair.target.n_ctx)
        self._lookup = LookupDrafter(pair.target.vocab.eog, library)
        self._experience = Experience(
            pair.costs,
            {} if pair.exit_agreement is None else {"exit": pair.exit_agreement},
            pair.lessons.taken_up() if pair.lessons else None,
        )
        inner = pair.draft.inner if isinstance(pair.draft, MappedModel) else pair.draft
        models = [] if pair.exact == "strict" else [pair.target, inner]
        self._pace = Pace(models, lambda: pair.costs.target, clock)
        self._planner: Planner | None = None
        self._ahead = ReadingAhead(pair, self.context, self._lookup, self._experience, self._prompt)
        self._cancelled = threading.Event()

    @classmethod
    def load(cls, config: EngineConfig, progress: Callable[[Loading], None] = lambda _: None) -> "Engine":
        """Load what `config` names; raises LoadFailed, PairMismatch or ConfigError."""
        from engine.loading import load_pair

        pair = load_pair(config, progress)
        return cls(pair, library=Library.of(config.library, pair.target.vocab))

    @property
    def loaded(self) -> Loaded:
        """Names, context and notes for the user."""
        loaded = msgspec.structs.replace(self.pair.loaded, thinks=self._chat.thinks)
        if self._chat.note:
            loaded.notes.append(self._chat.note)
        return loaded

    def answer(self, request: Request) -> Iterator[AnswerEvent]:
        """Answer a conversation; the last event is Finished.  Raises PromptError, ModelError.

        Where it outgrows the context its oldest turns leave (engine.forget), and the answer says how many.
        """
        if self._chat.stops:
            request = msgspec.structs.replace(request, stop=(*request.stop, *self._chat.stops))
        return self._answer(lambda: self._prompt(request), request)

    def _prompt(self, request: Request) -> Prompt:
        return self._horizon.prompt(
            request.messages, request.max_tokens, self.context.ids, request.go_on, request.thinking
        )

    def answer_ids(self, prompt: Sequence[int], request: Request) -> Iterator[AnswerEvent]:
        """As `answer`, for a prompt that is ids already; nothing leaves it."""
        return self._answer(lambda: Prompt(prompt), request)

    def _answer(self, make_prompt: Callable[[], Prompt], request: Request) -> Iterator[AnswerEvent]:
        started = self._clock()
        try:
            prompt = make_prompt()
            if not prompt.ids:
                raise ValueError("a prompt needs at least one id")
            if len(prompt.ids) >= self.pair.target.n_ctx:
                raise PromptTooLong(len(prompt.ids), self.pair.target.n_ctx)
            run = Run(self.pair, self.context, self._experience, request, prompt, self._clock)
            yield from self._events(run, started)
        finally:
            if self.pair.lessons:
                self.pair.lessons.keep(self._experience.learned)
            self._planner = None
            self._cancelled.clear()

    @property
    def learned(self) -> Learned:
        """What the pair has taught so far; set it to go back to what was known then."""
        return self._experience.learned

    @learned.setter
    def learned(self, learned: Learned) -> None:
        """Go back to this."""
        self._experience.go_back(learned)

    def study(self) -> Iterator[None]:
        """Measure what is still to be known, a pass or so a step, while there is no answer; close it before one.

        Nothing where something else was running of late: what is kept is of a quiet machine, with all threads.

        Raises Interrupted where `pause` ended a pass, and ModelError once; it may be begun again, and goes on from
        what it has.
        """
        study = self.pair.study
        if (
            study is None
            or self._pace.eased
            or any(cache.length != cache.model.length for cache in self.context.caches)
        ):
            return
        try:
            with closing(study.steps()) as steps:
                for news in steps:
                    if news:
                        self._know(study)
                    yield
        except Interrupted:
            raise
        except ModelError:
            self.pair.study = None
            for cache in self.context.caches:
                cache.doubt()
            raise

    def _know(self, study: Study) -> None:
        """Take over what a study has found out."""
        found = study.costs
        drafts = {**self.pair.costs.drafts, **found.drafts}
        self.pair.costs = replace(found, drafts=drafts)
        self.pair.change = study.change
        self._experience.costs.rebase(self.pair.costs)

    def keep(self, folder: Path, most: int | None = None) -> Kept:
        """Write what the caches hold to a folder of the conversation's own, in place of what it has.

        Where that takes more than `most` bytes nothing is written.
        """
        return keep(self.context, stamp_of(self.pair), folder, most)

    def resume(self, folder: Path) -> Resumed:
        """Take up what `keep` wrote, in place of what the caches hold; what does not fit is read again.

        Where that is nothing the caches hold nothing.
        """
        found = resume(self.context, stamp_of(self.pair), folder)
        self._lookup.begin(self.context.ids, 0)
        return found

    def prepare(self, request: Request) -> Iterator[None]:
        """Read what a request surely begins with, though its last message is still typed; as `study`."""
        return self._ahead.steps(request)

    def count(self, texts: Sequence[str]) -> list[int]:
        """From any thread: how many tokens each text has."""
        return [len(self.pair.target.vocab.tokenize(text)) for text in texts]

    def pause(self) -> None:
        """From any thread: what runs of `study` or `prepare` is interrupted within its pass; no answer may run."""
        for cache in self.context.caches:
            cache.model.interrupt()

    def cancel(self) -> None:
        """From any thread: the running answer, or the one about to run, ends within a pass as cancelled."""
        self._cancelled.set()
        for cache in self.context.caches:
            cache.model.interrupt()

    def set_speculation(self, speculation: Speculation) -> None:
        """From any thread: holds from the running answer's next round on; the rule stays as it began."""
        if (planner := self._planner) is not None and self.pair.can_draft:
            planner.speculation = speculation

    def close(self) -> None:
        """Free the models."""
        self.pair.close()

    def _events(self, run: Run, started: float) -> Iterator[AnswerEvent]:
        finish: Finish = "length"
        planner = self._planner = run.planner
        try:
            yield from self._read(run, started)
            if self._cancelled.is_set():
                finish = "cancelled"
            elif run.request.max_tokens:
                with closing(rounds(self._answering(run, planner))) as steps:
                    for step in steps:
                        if isinstance(step, CatchingUp):
                            yield run.catching_up(step)
                        elif isinstance(step, DraftFailed):
                            run.draft_failed(step)
                        else:
                            yield from run.round(step)
                        if self._cancelled.is_set() and not run.finish:
                            run.finish = "cancelled"
                        if run.finish:
                            break
                finish = run.finish or finish
        except Interrupted:
            finish = "cancelled"
        yield from run.end(finish)
        answer = run.answer()
        if self._library is not None:
            self._library.add(answer.ids)
        yield Finished(answer=answer)

    def _read(self, run: Run, started: float) -> Iterator[Reading]:
        """The target reads its part of the prompt; the draft reads its own just before it is used."""
        kept = self._forget(run.prompt.hole)
        shared = self.context.begin(run.prompt.ids)
        self._lookup.begin(run.prompt.ids, min(shared, kept))
        run.begin(started)
        yield run.reading()
        for _ in self.context.read(self.context.target):
            yield run.reading()
            if self._cancelled.is_set():
                return

    def _forget(self, hole: tuple[int, int] | None) -> int:
        """Take what left the conversation out of the caches; how many ids stand where they stood.

        In strict exactness what follows is read again: what a cache keeps of it is near to a fresh reading, not equal.
        """
        if hole is None:
            return len(self.context.ids)
        self.context.forget(*hole, shift=self.pair.exact != "strict")
        return hole[0]

    def _answering(self, run: Run, planner: Planner) -> Answering:
        vocab = self.pair.target.vocab
        sampler = Sampler(run.request.sampling, vocab.size, vocab.eog, run.prompt.start)
        chances = partial(trace.chances, vocab.size) if run.request.trace else None
        rule = self._rules(run.rule, run.seed, len(run.prompt.ids))
        drafters: list[Drafter] = [self._lookup]
        if self.context.draft is not None:
            drafters.append(ModelDrafter(self.context, rule, sampler, self._cancelled.is_set, chances))
        if self.context.exit_layers is not None:
            drafters.append(ExitDrafter(self.context, rule, sampler, self._cancelled.is_set, chances))
        room = run.request.max_tokens
        return Answering(self.context, drafters, planner, rule, sampler, room, self._clock, self._pace.took, chances)
