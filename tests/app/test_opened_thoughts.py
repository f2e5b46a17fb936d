"""An answer that begins in a thought which its prompt opened: live, looked at again, broken off, gone on with, kept."""

from dataclasses import replace

from msgspec import structs

from app.screens.chat import ChatScreen
from app.settings import Settings
from app.transcript import Entry
from app.widgets.passages import Passages
from app.widgets.thought import Thought
from engine.errors import HostDied
from engine.events import Reading
from tests.app.fakes_shelf import chat_app, until
from tests.app.test_chat import ask
from tests.fakes_client import FakeClient, finished, one_round, tokens

OPENS = Reading(model="target", reused=0, done=9, total=9, opening="<think>")


def heads(screen: ChatScreen) -> list[str]:
    """The lines of the think blocks that are on the screen."""
    return [str(head.render()) for head in screen.query(".head")]


def prose(screen: ChatScreen) -> list[str]:
    """What is shown of texts and unfolded thoughts."""
    return [one.source for one in screen.query(Passages)]


async def test_it_is_a_thought_while_it_streams_when_it_is_looked_at_again_and_when_it_is_whole() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await ask(pilot, app, engine, "one")
        assert not screen.query(Thought)
        engine.client.send(OPENS, tokens("hm"), one_round())
        await until(pilot, lambda: heads(screen) == ["▸ thinking …"])
        assert prose(screen) == []
        number = screen.chat.branch.id
        await screen.open(None)
        await until(pilot, lambda: not screen.query(Thought))
        await screen.open(number)
        await until(pilot, lambda: heads(screen) == ["▸ thinking …"])
        engine.client.send(tokens("</think>Yes"), one_round())
        await until(pilot, lambda: prose(screen) == ["Yes"])
        engine.client.send(finished("hm</think>Yes.", opening="<think>"))
        await until(pilot, lambda: screen.state == "ready" and prose(screen) == ["Yes."])
        await screen.open(None)
        await screen.open(number)
        await until(pilot, lambda: prose(screen) == ["Yes."] and heads(screen)[0].startswith("▸ thought"))


async def test_one_that_broke_off_is_still_a_thought_and_so_is_what_goes_on_from_it() -> None:
    app, engine = chat_app(FakeClient(), FakeClient())
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await ask(pilot, app, engine, "one")
        engine.client.send(OPENS, tokens("hm"), one_round())
        await until(pilot, lambda: screen.query(Thought))
        number = screen.chat.branch.id
        assert number is not None
        assert screen.chat.store.get(number).path[-1].entry.opening == "<think>"
        engine.client.send(HostDied("it is gone"))
        await until(pilot, lambda: screen.state == "dead")
        kept = screen.chat.store.get(number).path[-1].entry
        assert (kept.text, kept.opening, kept.answer, kept.ending) == ("hm", "<think>", None, "broken off")
        await pilot.press("f5")
        await until(pilot, lambda: screen.state == "ready")
        await screen.open(None)
        await screen.open(number)
        await until(pilot, lambda: prose(screen) == ["hm"] and heads(screen)[0].startswith("▾ thought"))
        await pilot.press("ctrl+l")
        await until(pilot, lambda: engine.client.requests)
        engine.client.send(structs.replace(OPENS, opening=""), tokens(", so"), one_round())
        await until(pilot, lambda: heads(screen) == ["▸ thinking …"])
        engine.client.send(finished(", so</think>Yes."))
        await until(pilot, lambda: screen.state == "ready" and prose(screen) == ["Yes."])
        kept = screen.chat.store.get(number).path[-1].entry
        assert (kept.text, kept.opening) == ("hm, so</think>Yes.", "<think>")


async def test_the_settings_say_how_thoughts_are_shown() -> None:
    app, engine = chat_app(settings=Settings(thoughts="open"))
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await ask(pilot, app, engine, "one")
        engine.client.send(OPENS, tokens("hm"), one_round())
        await until(pilot, lambda: prose(screen) == ["hm"])
        engine.client.send(finished("hm</think>Yes.", opening="<think>"))
        await until(pilot, lambda: screen.state == "ready" and prose(screen) == ["hm", "Yes."])
        screen.show_window(replace(Settings().window, thoughts="folded"))
        await until(pilot, lambda: prose(screen) == ["Yes."])
        assert heads(screen)[0].startswith("▸ thought")


def test_an_entry_begins_as_its_answer_does() -> None:
    answer = finished("hm", opening="<think>").answer
    assert Entry.of_answer(answer).opening == "<think>"
