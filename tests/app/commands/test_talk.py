import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from app import cli, paths
from app.commands.talk import Talk, open_talk
from app.errors import StoreDamaged, UsageError
from app.settings import Settings
from app.store.store import Store
from app.transcript import Entry
from engine import client
from engine.config import Message, Request
from tests.app.command import FAKE, variables
from tests.engine import host_fake
from tests.engine.host_fake import answer_of
from tests.tiny_gguf import write_llama

Run = Callable[..., tuple[int, str, str]]
HERE = Settings()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    monkeypatch.delenv("PACELINE_HISTORY", raising=False)
    return tmp_path


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store.open(paths.conversations_file())) as opened:
        yield opened


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What the engine is asked, in this process, with an engine that does what the prompt says."""
    requests: list[Request] = []
    real = client.EngineClient.answer

    def answer(self: client.EngineClient, request: Request) -> object:
        requests.append(request)
        return real(self, request)

    monkeypatch.setattr(client, "command_line", host_fake.command_line)
    monkeypatch.setattr(client.EngineClient, "answer", answer)
    return requests


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def go(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["ask", "--demo", *arguments])
        return (code, *capfd.readouterr())

    return go


def said(request: Request) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in request.messages]


def path(store: Store, number: int) -> list[tuple[str, str]]:
    return [(node.entry.text, node.entry.ending) for node in store.get(number).path]


def begun(store: Store, *texts: str, system: str = "", **options: object) -> int:
    number, parent = store.create(system, options), None
    for place, text in enumerate(texts):
        answer = replace(answer_of([7, 8], "stop"), text=text)
        entry = Entry.of_answer(answer) if place % 2 else Entry("user", text)
        parent = store.add(number, parent, entry).id
    return number


def test_the_latest_conversation_goes_on(store: Store, run: Run, asked: list[Request]) -> None:
    older, newer = begun(store, "old", "older"), begun(store, "new", "newer", system="be brief", temperature=0.25)
    store.pin(older, True)
    assert run("2", "--continue")[:2] == (0, "0 1 \n")
    assert said(asked[0]) == [("system", "be brief"), ("user", "new"), ("assistant", "newer"), ("user", "2")]
    assert asked[0].messages[2].ids == (7, 8)
    assert asked[0].sampling.temperature == 0.25
    assert path(store, newer) == [("new", ""), ("newer", ""), ("2", ""), ("0 1 ", "cut off")]
    assert path(store, older) == [("old", ""), ("older", "")]


def test_a_conversation_goes_on_by_its_number(store: Store, run: Run, asked: list[Request]) -> None:
    first, _ = begun(store, "a", "b", system="brief", temperature=0.25, seed=3), begun(store, "c")
    arguments = ["1", "--conversation", str(first), "--temperature", "0.5", "--system", "long", "--json"]
    assert json.loads(run(*arguments)[1])["text"] == "0 "
    assert said(asked[0])[0] == ("system", "long")
    assert (asked[0].sampling.temperature, asked[0].sampling.seed) == (0.5, 3)
    assert len(path(store, first)) == 4
    kept = store.get(first)
    assert (kept.system, kept.options) == ("brief", {"temperature": 0.25, "seed": 3})


def test_turns_go_on_as_one(store: Store, run: Run, asked: list[Request], tmp_path: Path) -> None:
    number = begun(store, "a", "b")
    (tmp_path / "turns.json").write_text('["1", "2"]')
    assert run("--turns", str(tmp_path / "turns.json"), "--continue")[0] == 0
    assert path(store, number)[2:] == [("1", ""), ("0 ", "cut off"), ("2", ""), ("0 1 ", "cut off")]
    assert len(asked[1].messages) == 5


def test_a_question_without_an_answer_stays_beside_the_new_one(store: Store, run: Run, asked: list[Request]) -> None:
    number = begun(store, "a", "b", "lost")
    assert run("1", "--continue")[0] == 0
    assert said(asked[0]) == [("user", "a"), ("assistant", "b"), ("user", "1")]
    question = store.get(number).path[2]
    assert (question.entry.text, question.entry.version, question.entry.versions) == ("1", 2, 2)


def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came(store: Store, run: Run, asked: list[Request]) -> None:
    number = begun(store, "a", "b")
    assert run("fault", "--continue")[0] == 1
    assert path(store, number)[2:] == [("fault", ""), ("0 1 2 ", "broken off")]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "ending"), [(signal.SIGINT, "stopped"), (signal.SIGKILL, "broken off")])
def test_an_answer_that_is_ended_is_kept(store: Store, home: Path, number: int, ending: str) -> None:
    conversation = begun(store, "a", "b")
    with subprocess.Popen(
        [*FAKE, "ask", "--demo", "block", "--continue"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables(home),
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(6) == b"0 1 2 "
        os.killpg(process.pid, number)
    question, answer = path(store, conversation)[2:]
    assert question == ("block", "")
    assert answer[1] == ending
    assert "0 1 2 ".startswith(answer[0])
    assert answer[0]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--continue", "--conversation", "1"], "exclude each other"),
        (["--conversation", "7"], "there is no conversation 7: the latest are 2 (second), 1 (first)"),
        (["--conversation", "x"], "conversation"),
        (["--continue", "--history=false"], "history is off"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said(store: Store, run: Run, arguments: list[str], line: str) -> None:
    begun(store, "first")
    begun(store, "second")
    code, out, errors = run("hi", *arguments)
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert line in errors


def test_with_nothing_stored_there_is_nothing_to_go_on_with() -> None:
    for wanted in ({"latest": True}, {"number": 1}):
        with pytest.raises(UsageError, match="no conversation is stored yet"):
            open_talk(HERE, HERE, **wanted)


def spoken(talk: Talk) -> None:
    talk.ask("question")
    talk.hear("0 ")
    talk.end(answer_of([0]))


def test_a_conversation_is_kept_with_what_the_command_line_says(store: Store) -> None:
    line = Settings(temperature=0.1, threads=2)
    with closing(open_talk(line.over(Settings(system="brief", seed=4)), line)) as talk:
        spoken(talk)
        spoken(talk)
    kept = store.get(store.recent(1)[0].id)
    assert (kept.title, kept.system, kept.options) == ("question", "brief", {"temperature": 0.1})
    assert [node.entry.text for node in kept.path] == ["question", "0 "] * 2


@pytest.mark.parametrize("settings", [Settings(history=False), Settings(demo=True)])
def test_nothing_is_kept_of_a_demo_or_without_history(settings: Settings, home: Path) -> None:
    with closing(open_talk(settings, settings)) as talk:
        spoken(talk)
        assert talk.ask("more").messages == (
            Message(role="user", content="question"),
            Message(role="assistant", content="0 ", ids=(0,)),
            Message(role="user", content="more"),
        )
    assert list(home.iterdir()) == []


def test_an_answer_comes_though_it_cannot_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    file = paths.private_file(paths.conversations_file())
    file.write_bytes(b"broken" * 999)
    with closing(open_talk(HERE, HERE)) as talk:
        spoken(talk)
    errors = capsys.readouterr().err
    assert errors.startswith(f"paceline: this conversation is not kept: {file} is damaged")
    assert errors.count("\n") == 1
    with pytest.raises(StoreDamaged):
        open_talk(HERE, HERE, latest=True)
    assert file.read_bytes() == b"broken" * 999


def test_trouble_while_it_is_kept_is_told_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    number = begun(store, "a", "b")
    talk = Talk(store, HERE, HERE, store.get(number))
    store.delete(number)
    spoken(talk)
    spoken(talk)
    assert capsys.readouterr().err.count("is not kept") == 1
    assert [message.content for message in talk.ask("x").messages] == ["a", "b", *["question", "0 "] * 2, "x"]


def test_ask_is_kept_unless_history_is_off(tmp_path: Path, store: Store, asked: list[Request]) -> None:
    options = ["--target", str(write_llama(tmp_path / "model.gguf")), "--max-tokens", "4"]
    assert cli.run(["ask", "1", *options]) == 0
    assert cli.run(["ask", "2", *options, "--history=false"]) == 0
    assert cli.run(["ask", "3", *options, "--continue"]) == 0
    assert [summary.title for summary in store.summaries()] == ["1"]
    assert path(store, 1) == [("1", ""), ("0 ", "cut off"), ("3", ""), ("0 1 2 ", "cut off")]
    assert store.get(1).options == {"max_tokens": 4}
    assert len(asked) == 3
