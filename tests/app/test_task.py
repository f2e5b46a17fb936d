"""One piece of work at a time: what it reports, how it is stopped, how it ends."""

import threading

from textual.app import App, ComposeResult
from textual.message import Message

from app.setup import Asked, Fetched, Report
from app.widgets.task import Task
from models.errors import ModelsError
from tests.app.fakes_shelf import until


class Host(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.done: list[int] = []

    def compose(self) -> ComposeResult:
        yield Task(stopped="Stopped.", again=" (again)")

    def take(self, result: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.done.append(result)


def test_reports_that_say_the_same_are_posted_once() -> None:
    posted: list[Message] = []

    class Kept(Task):
        def post_message(self, message: Message) -> bool:
            posted.append(message)
            return True

    task = Kept(stopped="")
    for done in range(100_000):
        task.report(Fetched("x", done, 100_000))
    assert 100 <= len(posted) <= 201


async def test_work_is_done_in_a_thread_one_at_a_time_and_its_result_taken_in_the_window() -> None:
    app, go = Host(), threading.Event()

    def work(report: Report, cancelled: Asked) -> int:
        assert threading.current_thread() is not threading.main_thread()
        report(Fetched("half [done]", 1, 2))
        assert go.wait(20)
        return 7

    async with app.run_test(size=(60, 10)) as pilot:
        task = app.query_one(Task)
        task.begin("Work", work, app.take)
        task.begin("Other", lambda _report, _asked: 8, app.take)
        await until(pilot, lambda: "half [done]" in str(task.bar.render()))
        assert task.busy
        go.set()
        await until(pilot, lambda: not task.busy)
        assert app.done == [7]
        assert str(task.bar.render()) == ""
        task.begin("Other", lambda _report, _asked: 8, app.take)
        await until(pilot, lambda: app.done == [7, 8])


async def test_a_stop_a_failure_and_a_fault_are_told_apart() -> None:
    app = Host()

    def waits(_: Report, cancelled: Asked) -> int:
        while not cancelled():
            threading.Event().wait(0.001)
        raise ModelsError("stopped")

    def fails(_: Report, cancelled: Asked) -> int:
        raise ModelsError("no [network]: check it")

    def breaks(_: Report, cancelled: Asked) -> int:
        raise KeyError("size")

    async with app.run_test(size=(60, 10)) as pilot:
        task = app.query_one(Task)
        task.begin("Work", waits, app.take)
        task.stop()
        await until(pilot, lambda: not task.busy)
        assert (str(task.said.render()), task.said.has_class("-error")) == ("Stopped.", False)
        for work, said in ((fails, "no [network]: check it (again)"), (breaks, "unexpected KeyError")):
            task.begin("Work", work, app.take)
            await until(pilot, lambda: not task.busy)
            assert str(task.said.render()).startswith(said)
            assert task.said.has_class("-error")
        assert app.done == []
