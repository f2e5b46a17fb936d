"""Where an answer goes: JSON lines, a pipe that takes the text as it is, or a terminal that must not be harmed."""

import os
import sys
from typing import BinaryIO, Protocol, TextIO

import msgspec

from engine.config import Mode
from engine.detokenize import sanitize
from engine.stats import Answer

DIM, PLAIN, CLEAR = "\x1b[2m", "\x1b[0m", "\r\x1b[K"


class Output(Protocol):
    """Takes an answer while it comes and when it has ended."""

    def text(self, text: str) -> None:
        """More of the answer."""
        ...

    def end(self, answer: Answer) -> None:
        """The answer has ended."""
        ...

    def close(self) -> None:
        """Nothing more comes; an answer that has not ended never will."""
        ...


class JsonLines:
    """One object a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def text(self, text: str) -> None:
        """The text comes with the object."""

    def end(self, answer: Answer) -> None:
        """Print the object."""
        self._stream.write(msgspec.json.encode(answer) + b"\n")
        self._stream.flush()

    def close(self) -> None:
        """There is no half an object."""


class Raw:
    """The text as it is, each burst at once; each answer ends its line, and an empty line parts two answers."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._first, self._last = True, ""

    def text(self, text: str) -> None:
        """Write it at once."""
        if text:
            self._part()
            self._last = text[-1]
            self._write(text)

    def end(self, answer: Answer) -> None:
        """End the line."""
        del answer
        self._part()
        self._end_line()
        self._first, self._last = False, ""

    def close(self) -> None:
        """End a line that was left open."""
        if self._last:
            self._end_line()

    def _end_line(self) -> None:
        if self._last != "\n":
            self._write("\n")
            self._last = "\n"

    def _part(self) -> None:
        if not self._first and not self._last:
            self._write("\n")
            self._last = "\n"

    def _write(self, text: str) -> None:
        self._stream.write(self._shown(text).encode("utf-8", "replace"))
        self._stream.flush()

    def _shown(self, text: str) -> str:
        return text


class Terminal(Raw):
    """Control characters made visible; a line of figures at the end of each answer, on stderr."""

    def __init__(self, stream: TextIO, errors: TextIO) -> None:
        super().__init__(stream.buffer)
        self._encoding, self._errors = stream.encoding, errors

    def end(self, answer: Answer) -> None:
        """End the line and show the figures."""
        super().end(answer)
        line = figures(answer)
        self._errors.write(f"{DIM}{line}{PLAIN}\n" if styled(self._errors) else f"{line}\n")
        self._errors.flush()

    def _shown(self, text: str) -> str:
        return sanitize(text).encode(self._encoding, "replace").decode(self._encoding)

    def _write(self, text: str) -> None:
        self._stream.write(self._shown(text).encode(self._encoding))
        self._stream.flush()


def output(json: bool) -> Output:
    """The output that fits stdout as it is."""
    if json:
        return JsonLines(sys.stdout.buffer)
    return Terminal(sys.stdout, sys.stderr) if sys.stdout.isatty() else Raw(sys.stdout.buffer)


def styled(stream: TextIO) -> bool:
    """Whether a stream understands styles and wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def figures(answer: Answer) -> str:
    """What is worth knowing about an answer, in one line."""
    told, cache = answer.speculation, answer.cache.target
    parts = [
        _figure("{:.1f} tok/s", answer.timings.decode_tps),
        _figure("{:.0%} of drafts kept", told.acceptance_rate),
        _figure("{:.1f} tokens a round", told.mean_tokens_per_round),
        f"{cache.reused:,} reused, {cache.read:,} read",
        _plan(told.mode, told.plan),
    ]
    return sanitize(" · ".join(part for part in parts if part)).replace("\n", " ")


def _figure(form: str, value: float | None) -> str:
    return "" if value is None else form.format(value)


def _plan(mode: Mode, plan: str) -> str:
    return plan or f"speculation {mode}"
