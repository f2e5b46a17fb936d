"""Small hand-written fakes: a model that fails on demand, a clock that stands still, and a loop ready to run."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.backends.toy import EarlyLM, ScriptLM, ToyLM, ToyModel, ToyVocabulary
from engine.config import Request, Sampling, Speculation
from engine.drafters.library import Library
from engine.drafters.library_file import LibraryFile
from engine.engine import Engine
from engine.events import AnswerEvent, Finished
from engine.model import FloatArray
from engine.pair import Pair
from engine.stats import Answer


@dataclass
class FaultyModel:
    """Wraps a model, records each call, and raises `error()` at forward number `at` (from 0)."""

    inner: ToyModel
    at: int | None = None
    error: Callable[[], BaseException] = RuntimeError
    calls: list[tuple[str, object]] = field(default_factory=list)
    forwards: int = 0
    after: bool = False
    """Whether the fault comes after the work was done, as some of llama.cpp's do."""
    lasting: bool = False
    """Whether every later forward fails, too."""
    breaks: str | None = None
    """"rewind" or "drop": the next such call fails with `error()`."""

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        return self._pass("forward", tokens, lambda: self.inner.forward(tokens, rows))

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        """Counts as a forward."""
        inner = self.inner
        assert isinstance(inner, EarlyLM)
        return self._pass("leave", tokens, lambda: inner.leave(tokens, rows, layers))

    def _pass(self, name: str, tokens: Sequence[int], run: Callable[[], FloatArray]) -> FloatArray:
        number, self.forwards = self.forwards, self.forwards + 1
        self.calls.append((name, list(tokens)))
        if self.at is not None and (number == self.at or (self.lasting and number > self.at)):
            if self.after:
                run()
            raise self.error()
        return run()

    def rewind(self, length: int) -> None:
        if length != self.inner.length:
            self.calls.append(("rewind", length))
        self._change("rewind", lambda: self.inner.rewind(length))

    def drop(self, start: int, end: int) -> None:
        self.calls.append(("drop", (start, end)))
        self._change("drop", lambda: self.inner.drop(start, end))

    def _change(self, name: str, change: Callable[[], None]) -> None:
        if self.breaks != name:
            return change()
        self.breaks = None
        if self.after:
            change()
        raise self.error()


class FakeClock:
    """Stands still until it is told how much time went by."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def takes(self, model: ToyModel, seconds: Callable[[int], float]) -> None:
        """Each pass of `model` over n tokens takes `seconds(n)`."""

        def spend(tokens: Sequence[int]) -> None:
            self.now += seconds(len(tokens))

        model.on_pass = spend


def engine_of(
    target: object, draft: object = None, library: Sequence[Sequence[int]] | None = None, **options: object
) -> Engine:
    """An engine over toys; its models are empty and every call recorded so far is forgotten.

    `library`: earlier answers, kept in no file.
    """
    pair = Pair(target, draft, draft_name="draft" if draft else None, **options)  # type: ignore[arg-type]
    kept = None if library is None else Library(LibraryFile(Path(os.devnull, "answers"), pair.target.vocab.size))
    for answer in library or ():
        assert kept is not None
        kept.add(answer)
    engine = Engine(pair, library=kept)
    for model in (target, draft):
        if isinstance(model, FaultyModel):
            model.calls.clear()
            model.forwards = 0
    return engine


def request(
    sampling: Sampling | None = None,
    speculation: Speculation | None = None,
    max_tokens: int = 24,
    stop: tuple[str, ...] = (),
) -> Request:
    """A request whose messages do not matter."""
    return Request(
        messages=(),
        sampling=sampling or Sampling(temperature=0),
        speculation=speculation or Speculation(mode="off"),
        max_tokens=max_tokens,
        stop=stop,
    )


def fixed(length: int) -> Speculation:
    """A fixed draft length, or off for 0."""
    return Speculation(mode="fixed", length=length) if length else Speculation(mode="off")


def last(events: Iterator[AnswerEvent]) -> Answer:
    """Run an answer to its end."""
    *_, finished = events
    assert isinstance(finished, Finished)
    return finished.answer


def fresh(prompt: Sequence[int], asked: Request, target: Callable[[], ToyModel]) -> list[int]:
    """What a new engine with empty caches and no speculation answers."""
    plain = Request(
        messages=(),
        sampling=asked.sampling,
        max_tokens=asked.max_tokens,
        stop=asked.stop,
        speculation=Speculation(mode="off"),
    )
    return last(engine_of(target()).answer_ids(prompt, plain)).ids


def script_pair(
    answer: Sequence[int], mask: Callable[[int], bool], vocab: ToyVocabulary, prompt: int
) -> tuple[ScriptLM, ScriptLM]:
    """A target that says `answer` after `prompt` ids, and a draft that is right at i iff mask(i)."""
    end = min(vocab.eog)

    def wanted(ids: Sequence[int]) -> int:
        at = len(ids) - prompt
        return answer[at] if 0 <= at < len(answer) else end

    def guessed(ids: Sequence[int]) -> int:
        right = wanted(ids)
        return right if mask(len(ids) - prompt) else (right + 1) % (vocab.size - 1)

    return ScriptLM(vocab, wanted), ScriptLM(vocab, guessed)


__all__ = ["FakeClock", "FaultyModel", "ToyLM", "engine_of", "fixed", "fresh", "last", "request", "script_pair"]
