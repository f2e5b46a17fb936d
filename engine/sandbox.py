"""The one Jinja environment: templates from model files run here, watched at every step.

One invariant: each loop turn, call, filter, test, operator and output of a template is paid for from one budget, and
what could grow is paid for before it is made.  So a hostile template ends soon and small, whatever its source says.
"""

import json
import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Never

from jinja2 import Undefined, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.template_tree import Generation

STEP = 16
"""What one step costs, in characters."""
MAX_BITS = 4096
"""The longest number that a template may make."""

# Filters whose result is never much larger than what goes in; those that can grow are written anew below.  The others
# of Jinja's (attr, batch, center, filesizeformat, format, groupby, pprint, random, round, slice, striptags, sum,
# truncate, urlize, wordcount, wordwrap, xmlattr ...) occur in none of the 110 chat templates of models that were read
# for this, so what each could do to a budget was not worth working out; attr would pass by `is_safe_attribute`.
_FILTERS = """
    abs capitalize count d default dictsort e escape first float int items last length list lower map max min
    reject rejectattr reverse safe select selectattr sort title trim unique upper
"""
_OF_STRINGS = """
    capitalize casefold count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace isupper
    join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip split
    splitlines startswith strip title upper
"""
_ATTRIBUTES: dict[type, frozenset[str]] = {
    str: frozenset(_OF_STRINGS.split()),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
    int: frozenset(),
    float: frozenset(),
    bytes: frozenset(),
    type: frozenset(),
}


class Exhausted(Exception):
    """A template ran for too long or made too much."""


class Budget:
    """What one rendering may still spend: characters (a step costs some), and seconds of this thread's own time."""

    def __init__(self, characters: int, seconds: float) -> None:
        self.left = characters
        self.deadline = time.thread_time() + seconds

    def spend(self, characters: int = 0) -> None:
        """Pay for one step that makes that many characters or items; raises Exhausted."""
        self.left -= characters + STEP
        if self.left < 0 or time.thread_time() > self.deadline:
            raise Exhausted("it runs for too long or writes too much")


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja as chat templates expect it, with nothing that reaches out and a budget; for one thread at a time."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # constants would be computed at compile time, outside the budget
            extensions=["jinja2.ext.loopcontrols", Generation],
            finalize=_written,
        )
        self.budget = Budget(0, 0)
        del self.globals["lipsum"]
        filters: dict[str, Callable[..., Any]] = {name: self.filters[name] for name in _FILTERS.split()}
        filters |= {"replace": self.replace, "join": self.join, "string": self.text, "indent": self.indent}
        tests: dict[str, Any] = dict(self.tests)
        self.filters = {name: self._paid(made) for name, made in (filters | {"tojson": tojson}).items()}
        self.tests = {name: self._paid(test) for name, test in tests.items()}

    def _paid(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def paid(*args: Any, **kwargs: Any) -> Any:
            self.budget.spend()
            return self.weigh(function(*args, **kwargs))

        return paid

    def weigh(self, value: Any) -> Any:
        """Pay for a value: a text's length, and each item of nested lists as often as it occurs in them."""
        if isinstance(value, str):
            self.budget.spend(len(value))
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, (list, tuple, dict)):
                self.budget.spend(len(item))
                waiting.extend(item.values() if isinstance(item, dict) else item)
        return value

    def text(self, value: object) -> str:
        """A value as it is printed, paid for."""
        if not (value is None or isinstance(value, (str, int, float, list, tuple, dict, Undefined))):
            raise SecurityError(f"a {type(value).__name__} cannot be printed")
        text = str(value)
        self.budget.spend(len(text))
        return text

    def concat_all(self, *parts: object) -> str:
        """The operator `~`."""
        return "".join([self.text(part) for part in parts])

    def same(self, value: object) -> object:
        """The value itself: `call` weighs what it returns."""
        return value

    def tick(self) -> bool:
        """One turn of a loop: `call` takes the pay."""
        return True

    def join(self, values: Iterable[object], d: str = "", attribute: str | int | None = None) -> str:
        """The filter and method `join`."""
        items = (value if attribute is None else self.getitem(value, attribute) for value in values)
        texts = [self.text(item) for item in items]
        self.budget.spend(len(d) * len(texts))
        return d.join(texts)

    def replace(self, value: str, old: str, new: str, count: int = -1) -> str:
        """The filter and method `replace`."""
        value = self.text(value)
        self.budget.spend(len(value) + (value.count(old) if old else len(value) + 1) * len(new))
        return value.replace(old, new, -1 if count is None else count)

    def indent(self, value: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
        """The filter `indent`."""
        if isinstance(width, int):
            self.budget.spend(max(width, 0))
        step = width if isinstance(width, str) else " " * width
        lines = self.text(value).split("\n")
        self.budget.spend(len(step) * len(lines))
        return "\n".join(
            step + line if (first or at) and (blank or line or not at) else line for at, line in enumerate(lines)
        )

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read this attribute; of plain values, only methods named here."""
        for kind, names in _ATTRIBUTES.items():
            if isinstance(obj, kind):
                return attr in names
        return super().is_safe_attribute(obj, attr, value)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Never:
        """An unsafe attribute ends the rendering at once, printed or not."""
        raise SecurityError(f"it reaches for {attribute!r} of a {type(obj).__name__}")

    def wrap_str_format(self, value: Any) -> None:
        """Never: `str.format` is no safe attribute here, since a width in it has no bound."""

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Each call of a template, paid for with its result."""
        self.budget.spend()
        owner, name = getattr(obj, "__self__", None), getattr(obj, "__name__", None)
        if isinstance(owner, str) and name == "replace":
            return self.replace(owner, *args, **_plain(kwargs))
        if isinstance(owner, str) and name == "join":
            return self.join(args[0], owner)
        return self.weigh(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Each operator, paid for before it is computed."""
        self.budget.spend(_growth(operator, left, right))
        if operator == "+" and not isinstance(left, str):
            return self.weigh(super().call_binop(context, operator, left, right))
        return super().call_binop(context, operator, left, right)


def tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The filter as chat templates know it: plain JSON, no HTML escapes."""
    if indent is not None and not 0 <= indent <= 16:
        raise SecurityError(f"an indent of {indent} is too wide")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@pass_context
def _written(context: Context, value: object) -> str:
    """What goes out; taking the context keeps it from being computed at compile time."""
    environment = context.environment
    assert isinstance(environment, Sandbox)
    return environment.text(value)


def _plain(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments without those that Jinja adds for its own use."""
    return {name: value for name, value in kwargs.items() if not name.startswith("_")}


def _growth(operator: str, left: object, right: object) -> int:
    """Most characters or items that an operator can make; a long number is refused here and now."""
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * max(right, 1) if operator == "**" else left.bit_length() + right.bit_length()
        if bits > MAX_BITS:
            raise Exhausted("its numbers grow too long")
        return 0
    if operator == "%" and isinstance(left, str):
        raise SecurityError("formatting by % is not allowed")
    if operator == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, (str, list, tuple)) and isinstance(times, int):
                return len(sequence) * max(times, 0)
    return (_size(left) + _size(right)) if operator == "+" else 0


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, list, tuple)) else 0
