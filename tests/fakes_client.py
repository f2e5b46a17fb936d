"""An engine client whose every event is released by the test, one step at a time: no clock, no process.

`FakeClient` has the face of `engine.client.EngineClient`; what the window asks of it is recorded.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from engine.config import EngineConfig, Request, Speculation
from engine.errors import EngineError, HostDied
from engine.events import AnswerEvent, Finished, Kept, Loaded, Loading, Reading, Resumed, Round, Tokens
from engine.stats import (
    Answer,
    CacheReceipts,
    Finish,
    Receipt,
    Settings,
    SourceCount,
    SpeculationStats,
    Timings,
    Verdict,
)

LOADED = Loaded(target="big-model", draft="small-model", n_ctx=8192, device="cpu")
AUTO = Speculation()


class FakeClient:
    """One engine; the test sends events with `send`, errors too."""

    def __init__(self, loads: Sequence[Loading | Loaded | EngineError] = (LOADED,)) -> None:
        self.loads = list(loads)
        self.configs: list[EngineConfig] = []
        self.requests: list[Request] = []
        self.speculations: list[Speculation] = []
        self.kept: list[Path] = []
        self.resumed: list[Path] = []
        self.prepared: list[Request] = []
        self.written = Kept(bytes=0)
        self.taken_up = Resumed(target=0, draft=None, found=False)
        """What `keep` and `resume` answer."""
        self.disk = asyncio.Event()
        """Both wait for it; it is open from the start."""
        self.disk.set()
        self.stops = 0
        self.closed = False
        self.left = 0
        """Answers whose iterator was left before its end."""
        self.stopping: Answer | None = None
        """What `stop` ends an answer with; None ends it with nothing."""
        self._events: asyncio.Queue[AnswerEvent | EngineError] = asyncio.Queue()
        self.gate = asyncio.Event()
        """Loading waits for it; it is open from the start."""
        self.gate.set()

    def send(self, *events: AnswerEvent | EngineError) -> None:
        """Release events of the running answer."""
        for event in events:
            self._events.put_nowait(event)

    async def load(self, config: EngineConfig) -> AsyncIterator[Loading | Loaded]:
        self.configs.append(config)
        for event in self.loads:
            if isinstance(event, EngineError):
                raise event
            if isinstance(event, Loaded):
                await self.gate.wait()
            yield event

    async def answer(self, request: Request) -> AsyncIterator[AnswerEvent]:
        if self.closed:
            raise HostDied("the engine is closed: start it again")
        self.requests.append(request)
        done = False
        try:
            while not done:
                event = await self._events.get()
                done = isinstance(event, Finished | EngineError)
                if isinstance(event, EngineError):
                    raise event
                yield event
        finally:
            self.left += not done

    async def stop(self) -> None:
        self.stops += 1
        if self.stopping is not None:
            self.send(Finished(answer=self.stopping))

    async def set_speculation(self, speculation: Speculation) -> None:
        self.speculations.append(speculation)

    async def keep(self, folder: Path, most: int | None = None) -> Kept:
        self.kept.append(folder)
        await self._disk()
        return self.written

    async def resume(self, folder: Path) -> Resumed:
        self.resumed.append(folder)
        await self._disk()
        return self.taken_up

    async def _disk(self) -> None:
        await self.disk.wait()
        if self.closed:
            raise HostDied("the engine is closed: start it again")

    async def prepare(self, request: Request) -> None:
        self.prepared.append(request)

    async def count(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    async def memory(self) -> int:
        return 2_000_000_000

    async def close(self) -> None:
        self.closed = True
        self.disk.set()


class FakeEngine:
    """Starts `FakeClient`s in the order given, and keeps them."""

    def __init__(self, *clients: FakeClient) -> None:
        self._waiting = list(clients or (FakeClient(),))
        self.started: list[FakeClient] = []

    async def __call__(self, log: Path) -> FakeClient:
        self.started.append(self._waiting.pop(0))
        return self.started[-1]

    @property
    def client(self) -> FakeClient:
        """The one that runs."""
        return self.started[-1]


def tokens(text: str, first: int = 1) -> Tokens:
    """A Tokens event, one id a character."""
    return Tokens(text=text, ids=list(range(first, first + len(text))), origins=["target"] * len(text))


def one_round(
    emitted: int = 3, drafted: int = 4, accepted: int = 2, ms: float = 60.0, context: int = 120, **fields: object
) -> Round:
    """A Round with fixed figures."""
    values: dict[str, object] = {
        "source": "lookup" if drafted else None, "plan": "lookup up to 7: +61 %", "speculation": AUTO, **fields
    }  # fmt: skip
    return Round(drafted=drafted, accepted=accepted, emitted=emitted, ms=ms, context=context, **values)  # type: ignore[arg-type]


def reading(done: int, total: int, reused: int = 0) -> Reading:
    """How far the target has read."""
    return Reading(model="target", reused=reused, done=done, total=total)


def answer(text: str, finish: Finish = "stop", **fields: object) -> Answer:
    """A record of an answer with fixed figures."""
    values: dict[str, object] = {
        "text": text,
        "ids": list(range(1, len(text) + 1)),
        "finish_reason": finish,
        "stop_kind": "eos" if finish == "stop" else None,
        "target": "big-model",
        "draft": "small-model",
        "settings": Settings(
            seed=7, temperature=0.0, exact="normal", engine="demo", weights=None, kv="f16", flash_attention="off",
            threads=2, device="cpu", n_ctx=8192,
        ),
        "cache": CacheReceipts(prompt_tokens=812, target=Receipt(reused=790, read=22), draft=Receipt(reused=7, read=2)),
        "timings": Timings(load_s=0.9, ttft_s=0.4, prompt_s=0.3, prompt_tps=70.1, decode_s=3.1, decode_tps=54.2),
        "speculation": SpeculationStats(
            mode="auto", length=None, width_limit=None, rule="rejection", rounds=89, drafted=120, accepted=80,
            acceptance_rate=0.67, acceptance_per_test=0.81, mean_tokens_per_round=1.9,
            by_source={"lookup": SourceCount(drafted=120, accepted=80)}, by_position=[0.8, 0.7],
            plan="lookup up to 7: +61 %; draft model off: needs 0.93, has 0.80",
        ),
        "verdict": Verdict(kind="clear", threshold=0.4),
        **fields,
    }  # fmt: skip
    return Answer(**values)  # type: ignore[arg-type]


def finished(text: str, finish: Finish = "stop", **fields: object) -> Finished:
    """The last event of an answer."""
    return Finished(answer=answer(text, finish, **fields))
