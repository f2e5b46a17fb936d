"""A long conversation reopened by another process: taking up both caches against reading it, first token included.

    reopen.py [TOKENS] [RUNS]

Each run: one engine process reads the conversation and keeps its caches; another takes them up, and is asked on.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from common import header, model_path, spread

from engine.calibration_text import TEXT
from engine.client import EngineClient
from engine.config import EngineConfig, Message, Request, Sampling, Speculation
from engine.events import Finished, Tokens
from engine.stats import Answer


async def opened(folder: Path) -> EngineClient:
    """A process with the pair loaded."""
    client = await EngineClient.start(folder / "engine.log")
    config = EngineConfig(
        target=model_path("TARGET"), draft=model_path("DRAFT"), n_ctx=8192, cache_dir=folder, calibrate="idle"
    )
    async for _ in client.load(config):
        pass
    return client


async def asked(client: EngineClient, messages: tuple[Message, ...]) -> tuple[float, Answer]:
    """Seconds to the first token, for which both models have read, and the answer."""
    speculation = Speculation(mode="fixed", length=2)
    request = Request(messages=messages, sampling=Sampling(temperature=0), speculation=speculation, max_tokens=8)
    began, first = time.perf_counter(), 0.0
    async for event in client.answer(request):
        if isinstance(event, Tokens) and not first:
            first = time.perf_counter() - began
        if isinstance(event, Finished):
            return first, event.answer
    raise AssertionError


async def run(folder: Path, tokens: int) -> float:
    """The share of the time that reading takes."""
    async with await opened(folder) as client:
        (size,) = await client.count([TEXT])
        text = (TEXT * (1 + tokens // size))[: len(TEXT) * tokens // size]
        messages = (Message(role="user", content=text),)
        cold, answer = await asked(client, messages)
        began = time.perf_counter()
        kept = await client.keep(folder / "kept")
        keeping = time.perf_counter() - began
        assert not kept.reason, kept.reason
    reply = Message(role="assistant", content=answer.text, ids=tuple(answer.ids))
    async with await opened(folder) as client:
        began = time.perf_counter()
        found = await client.resume(folder / "kept")
        resuming = time.perf_counter() - began
        assert not found.reason, found.reason
        first, again = await asked(client, (*messages, reply, Message(role="user", content="Go on.")))
    cache = again.cache
    assert cache.draft is not None
    print(
        f"{answer.cache.prompt_tokens} tokens: read and first token {cold:.2f} s; kept {kept.bytes / 1e6:.0f} MB in "
        f"{keeping:.2f} s; taken up {found.target} + {found.draft} in {resuming:.2f} s, first token {first:.2f} s "
        f"(read {cache.target.read} + {cache.draft.read})",
        flush=True,
    )
    return (resuming + first) / cold


async def main(tokens: int = 4000, runs: int = 3) -> None:
    """All runs, and the share of the time."""
    header(f"reopening a conversation of {tokens} tokens")
    with tempfile.TemporaryDirectory() as folder:
        shares = [await run(Path(folder), tokens) for _ in range(runs)]
    print(f"warm / cold: {spread(shares)}")
    if statistics.median(shares) >= 0.1:
        sys.exit("taking up is to take under a tenth of the time of reading")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
