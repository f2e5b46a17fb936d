"""The bridge: what it posts, in what order, and how seldom."""

import asyncio
from pathlib import Path

from textual.message import Message

from app.bridge import Bridge
from app.pace import Pace
from engine.config import EngineConfig, Request, Speculation
from engine.errors import HostDied, LoadFailed, PromptTooLong
from engine.events import Loading
from tests.fakes_client import LOADED, FakeClient, FakeEngine, finished, one_round, reading, tokens

CONFIG = EngineConfig(target=Path("t.gguf"))
REQUEST = Request(messages=())


class Pump:
    """Keeps what is posted."""

    def __init__(self) -> None:
        self.posted: list[Message] = []

    def post_message(self, message: Message) -> bool:
        self.posted.append(message)
        return True

    def names(self) -> list[str]:
        return [type(message).__name__ for message in self.posted]

    def texts(self) -> list[str]:
        return [message.text for message in self.posted if isinstance(message, Bridge.TextStreamed)]


def bridge(*clients: FakeClient, frame_s: float = 0.0) -> tuple[Bridge, Pump, FakeEngine]:
    pump, engine = Pump(), FakeEngine(*clients)
    return Bridge(pump, engine, Path("log"), Pace(frame_s)), pump, engine  # type: ignore[arg-type]


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_load_posts_its_progress_and_the_pair() -> None:
    one, pump, _ = bridge(FakeClient([Loading(what="target", share=0.5), LOADED]))
    await one.load(CONFIG)
    assert pump.names() == ["EngineStarted", "LoadProgressed", "PairLoaded"]


async def test_a_second_load_uses_the_engine_that_is_there() -> None:
    one, pump, engine = bridge()
    await one.load(CONFIG)
    await one.load(CONFIG)
    assert len(engine.started) == 1
    assert pump.names().count("EngineStarted") == 1


async def test_what_fails_is_posted_and_the_engine_stays() -> None:
    one, pump, engine = bridge(FakeClient([LoadFailed("no: try again")]))
    await one.load(CONFIG)
    assert pump.names() == ["EngineStarted", "RequestFailed"]
    assert not engine.client.closed


async def test_a_death_closes_the_engine_and_the_next_load_starts_another() -> None:
    one, pump, engine = bridge(FakeClient([HostDied("gone: start it again")]), FakeClient())
    await one.load(CONFIG)
    assert pump.names() == ["EngineStarted", "EngineDied"]
    assert engine.started[0].closed
    await one.load(CONFIG)
    assert pump.names()[2:] == ["EngineStarted", "PairLoaded"]


async def test_an_answer_is_posted_in_order_and_whole() -> None:
    one, pump, engine = bridge()
    await one.load(CONFIG)
    engine.client.send(reading(1, 2), tokens("ab"), one_round(), tokens("c"), one_round(), finished("abc"))
    await one.answer(REQUEST)
    assert pump.names()[2:3] == ["PromptRead"]
    assert "".join(pump.texts()) == "abc"
    assert pump.names()[-1] == "AnswerFinished"


async def test_a_thousand_rounds_within_a_frame_make_two_posts() -> None:
    one, pump, engine = bridge(frame_s=3600.0)
    await one.load(CONFIG)
    task = asyncio.create_task(one.answer(REQUEST))
    engine.client.send(tokens("0"), one_round())
    await turns()
    for number in range(1000):
        engine.client.send(tokens(str(number % 10)), one_round(context=number))
    await turns(3000)
    assert len(pump.texts()) <= 1
    engine.client.send(finished("..."))
    await task
    texts = pump.texts()
    assert len(texts) == 2
    assert len("".join(texts)) == 1001
    last = [message for message in pump.posted if isinstance(message, Bridge.TextStreamed)][-1]
    assert last.live is not None
    assert last.live.context == 999


async def test_each_post_of_text_is_told_to_the_pace() -> None:
    class Counting(Pace):
        updates = 0

        def updated(self) -> None:
            self.updates += 1

    pump, engine, pace = Pump(), FakeEngine(), Counting(0.0)
    one = Bridge(pump, engine, Path("log"), pace)  # type: ignore[arg-type]
    await one.load(CONFIG)
    engine.client.send(tokens("a"), one_round(), finished("a"))
    await one.answer(REQUEST)
    assert pace.updates == len(pump.texts()) == 1


async def test_text_that_came_before_a_failure_is_posted_before_it() -> None:
    one, pump, engine = bridge(frame_s=3600.0)
    await one.load(CONFIG)
    engine.client.send(tokens("a"), one_round(), tokens("b"), PromptTooLong(9, 8))
    await one.answer(REQUEST)
    assert "".join(pump.texts()) == "ab"
    assert pump.names()[-1] == "RequestFailed"


async def test_what_was_forgotten_is_never_posted() -> None:
    one, pump, engine = bridge(frame_s=3600.0)
    await one.load(CONFIG)
    task = asyncio.create_task(one.answer(REQUEST))
    engine.client.send(tokens("a"), one_round())
    await turns()
    engine.client.send(tokens("b"), one_round())
    await turns()
    task.cancel()
    one.forget()
    await asyncio.gather(task, return_exceptions=True)
    engine.client.send(tokens("c"), one_round(), finished("c"))
    await one.answer(REQUEST)
    assert "b" not in "".join(pump.texts())


async def test_an_answer_without_an_engine_says_that_it_is_dead() -> None:
    one, pump, _ = bridge()
    await one.answer(REQUEST)
    assert pump.names() == ["EngineDied"]


async def test_stop_speculation_and_close_reach_the_engine_and_need_none() -> None:
    one, _, engine = bridge()
    await one.stop()
    await one.set_speculation(Speculation(mode="off"))
    await one.close()
    await one.load(CONFIG)
    await one.stop()
    await one.set_speculation(Speculation(mode="off"))
    await one.close()
    client = engine.client
    assert (client.stops, client.speculations, client.closed) == (1, [Speculation(mode="off")], True)
