"""A host whose engine does what the prompt says; run as a program, it is a host process without any model."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.config import EngineConfig, Request, Speculation
from engine.errors import DecodeFailed, Interrupted, LoadFailed, PromptTooLong
from engine.events import AnswerEvent, Finished, Kept, Loaded, Loading, Reading, Resumed, Round, Tokens
from engine.stats import Answer, CacheReceipts, Finish, Receipt, Settings, SpeculationStats, Timings, Verdict

NOBODY = 60.0
"""Seconds after which a wait for something that never comes gives up."""


def answer_of(ids: list[int], finish: Finish = "length", request: Request | None = None) -> Answer:
    """A plausible record with this much text."""
    sampling = request.sampling if request else None
    return Answer(
        text="".join(f"{token} " for token in ids),
        ids=ids,
        finish_reason=finish,
        stop_kind=None,
        target="fake",
        draft=None,
        settings=Settings(
            seed=(sampling.seed if sampling else None) or 0,
            temperature=sampling.temperature if sampling else 0.0,
            exact="normal",
            engine="demo",
            weights=None,
            kv="f16",
            flash_attention="off",
            threads=1,
            device="cpu",
            n_ctx=64,
        ),
        cache=CacheReceipts(prompt_tokens=1, target=Receipt(read=1), draft=None),
        timings=Timings(load_s=0, ttft_s=0.1, prompt_s=0.1, prompt_tps=10.0, decode_s=1.0, decode_tps=12.5),
        speculation=SpeculationStats(
            mode="auto",
            length=None,
            width_limit=None,
            rule="rejection",
            rounds=len(ids),
            drafted=0,
            accepted=0,
            acceptance_rate=None,
            acceptance_per_test=None,
            mean_tokens_per_round=1.0,
            by_source={},
            by_position=[],
            plan="nothing to draft",
        ),
        verdict=Verdict(kind="not_greedy"),
    )


class FakeEngine:
    """Answers by the last message: a number of tokens, or the name of a misfortune."""

    def __init__(self, config: EngineConfig) -> None:
        self.loaded = Loaded(target=config.target.name, draft=None, n_ctx=64, device="cpu", notes=["a note"])
        self.cancelled = threading.Event()
        self.speculation = Speculation()
        self.changed = threading.Event()
        self.closed = False

    @classmethod
    def load(cls, config: EngineConfig, progress: Callable[[Loading], None]) -> "FakeEngine":
        """`missing` fails, `slow` goes on until it is told to stop."""
        if config.target.name == "missing":
            raise LoadFailed("there is no such file: pull it")
        count = 0
        while config.target.name == "slow" and count < 10_000_000:
            count += 1
            progress(Loading(what="fake", share=0.5))
        if config.target.name == "deaf":
            threading.Event().wait(NOBODY)
        progress(Loading(what="fake", share=1.0))
        return cls(config)

    def answer(self, request: Request) -> Iterator[AnswerEvent]:
        """Does what the prompt says."""
        word = request.messages[-1].content
        self.speculation = request.speculation
        ids: list[int] = []
        finish: Finish = "length"
        try:
            yield Reading(model="target", reused=0, done=1, total=1)
            for token in range(int(word) if word.isdigit() else 3):
                if self.cancelled.is_set():
                    finish = "cancelled"
                    break
                ids.append(token)
                yield Tokens(text=f"{token} ", ids=[token], origins=["target"])
                yield self._round()
            if not word.isdigit() and self._misfortune(word):
                finish = "cancelled"
            yield self._round()
            yield Finished(answer=answer_of(ids, finish, request))
        finally:
            self.cancelled.clear()

    def _round(self) -> Round:
        return Round(
            source=None, drafted=0, accepted=0, emitted=1, ms=1, context=1, plan="", speculation=self.speculation
        )

    def _misfortune(self, word: str) -> bool:
        if word == "block":
            return self.cancelled.wait(NOBODY)
        if word == "deaf":
            threading.Event().wait(NOBODY)
        if word == "respec":
            self.changed.wait(NOBODY)
        if word == "die":
            print("GGML_ASSERT(n > 0) failed\n", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if word == "exit":
            os.write(2, b"out of luck\n")
            os._exit(7)
        if word == "noise":
            for number in range(1000):
                os.write(1 + number % 2, b"native noise\n")
        if word == "fault":
            raise DecodeFailed("the pass failed:\n try again")
        if word == "long":
            raise PromptTooLong(100, 64)
        if word == "bug":
            raise ZeroDivisionError("a bug")
        if word == "interrupted":
            raise Interrupted("stopped")
        return False

    def cancel(self) -> None:
        """Ends the answer."""
        self.cancelled.set()

    def set_speculation(self, speculation: Speculation) -> None:
        """Holds from the next round on."""
        self.speculation = speculation
        self.changed.set()

    def study(self) -> Iterator[None]:
        """Nothing to find out."""
        return iter(())

    def prepare(self, request: Request) -> Iterator[None]:
        """Nothing to read."""
        return iter(())

    def pause(self) -> None:
        """Nothing to end."""

    def keep(self, folder: Path, most: int | None = None) -> Kept:
        """Says what it was told to, and fails where it was told that."""
        if folder.name == "fault":
            raise DecodeFailed("the cache is gone: ask again")
        return Kept(bytes=len(folder.name), reason="" if most is None else f"at most {most}")

    def resume(self, folder: Path) -> Resumed:
        """As much."""
        return Resumed(target=len(folder.name), draft=None, reason=ascii(folder.name))

    def count(self, texts: list[str]) -> list[int]:
        """A token a character."""
        if "bug" in texts:
            raise ZeroDivisionError("a bug")
        return [len(text) for text in texts]

    def close(self) -> None:
        """Remembers it."""
        self.closed = True


def command_line(log: Path) -> list[str]:
    """How a client starts this host."""
    return [sys.executable, "-P", __file__, str(log)]


if __name__ == "__main__":
    from engine import host

    host.load_engine = FakeEngine.load
    host.main()
