"""One long piece of work at a time, in a thread: how far it is, how to stop it, and how it ended.

Whatever goes wrong is one line, and the next piece of work can begin.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from app import figures
from app.cells import one_line
from app.setup import Asked, Fetched, Report
from app.widgets.bar import Bar, Progress
from app.widgets.closing import unless_closing

T = TypeVar("T")
Work = Callable[[Report, Asked], T]
"""What is done: given a function to report to, and one that says whether the user wants it to stop."""


class Task(Vertical):
    """A bar while something is done, and a line about how it ended."""

    DEFAULT_CSS = """
    Task {
        width: 1fr;
        height: auto;

        Bar {
            width: 1fr;
            height: 1;
            padding: 0 1;
        }

        #said {
            width: 1fr;
            height: auto;
            padding: 0 1;
            color: $text-muted;

            &.-error {
                color: $text-error;
            }
        }
    }
    """

    busy: reactive[bool] = reactive(False, init=False)
    """Whether something is being done."""

    @dataclass
    class Progressed(Message):
        """A part is done."""

        fetched: Fetched

    def __init__(self, *, stopped: str, again: str = "") -> None:
        """What to say after the user stopped it, and what to add to the reason for a failure."""
        super().__init__()
        self.bar = Bar()
        self.said = Static(id="said", markup=False)
        self._stopped, self._again = stopped, again
        self._cancelled = threading.Event()
        self._worker: Worker[Callable[[], None]] | None = None
        self._reported = ("", -1)

    def compose(self) -> ComposeResult:
        """The bar and the line."""
        yield self.bar
        yield self.said

    def begin(self, what: str, work: Work[T], done: Callable[[T], None]) -> None:
        """Start, unless something is being done; `done` is called here, in the window, with what came of it."""
        if self.busy:
            return
        self._cancelled = cancelled = threading.Event()
        self.say("")
        self.busy = True
        self.bar.progress = Progress(what, 0.0)

        def run() -> Callable[[], None]:
            result = work(self.report, cancelled.is_set)
            return lambda: done(result)

        self._worker = self.run_worker(run, thread=True, exit_on_error=False)

    def report(self, fetched: Fetched) -> None:
        """From the thread: each step of half a per cent once."""
        step = (fetched.what, 200 * fetched.done // max(1, fetched.total))
        if step != self._reported:
            self._reported = step
            self.post_message(self.Progressed(fetched))

    @on(Progressed)
    def _progressed(self, event: Progressed) -> None:
        event.stop()
        if not self.busy or self._cancelled.is_set():
            return
        from models.text import size

        done = event.fetched
        detail = f"{size(done.done)} / {size(done.total)}"
        share = done.done / done.total if done.total else 0.0
        self.bar.progress = Progress(done.what, share, f"{detail} · {figures.share(share)}")

    @on(Worker.StateChanged)
    def _ended(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        event.stop()
        if worker is not self._worker or worker.is_running or worker.state is WorkerState.PENDING:
            return
        self._worker = None
        with unless_closing:
            self.bar.progress = None
            self.busy = False
            self._tell_how(worker)

    def _tell_how(self, worker: Worker[Callable[[], None]]) -> None:
        """Take the result, or say why there is none."""
        if worker.state is WorkerState.SUCCESS and worker.result is not None:
            worker.result()
        elif self._cancelled.is_set():
            self.say(self._stopped)
        elif worker.error is not None:
            self.say(f"{reason(worker.error)}{self._again}", error=True)

    def stop(self) -> None:
        """Stop what is being done; what is finished of it is kept."""
        if self.busy:
            self._cancelled.set()
            self.bar.progress = Progress("Stopping", 0.0, "…")

    def say(self, text: str, *, error: bool = False) -> None:
        """One line below the bar."""
        self.said.set_class(error, "-error")
        self.said.update(Content(one_line(text)))

    def on_unmount(self) -> None:
        """Stop where the window closes."""
        self._cancelled.set()


def reason(error: BaseException) -> str:
    """What went wrong, in one line."""
    from app import report

    return report.describe(error)[0] if isinstance(error, Exception) else type(error).__name__
