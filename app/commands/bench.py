"""`paceline bench`: how fast answers come with drafts, by kind of text, with these models on this machine.

Results go to stdout, kind by kind; how far it is goes to stderr.  Ctrl-C prints what is done.
"""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from app.errors import INTERRUPTED, UsageError
from app.settings import Settings

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.experiments.bench_plan import Plan
    from engine.experiments.bench_records import Run

SETTINGS = Annotated[Settings | None, Parameter(name="*")]
MANY = Parameter(consume_multiple=True)
NO_HISTORY = {"history": "what was answered before has no part in a measurement: leave --history out"}
INSTEAD = {
    **NO_HISTORY,
    "spec": "speculation is what changes from run to run: leave --spec out, or take --fixed N",
    "temperature": "take --temperatures for a list of them in place of --temperature",
    "max_tokens": "take --tokens in place of --max-tokens",
    "stop": "the benchmark's prompts are its own: leave --stop out",
    "system": "the benchmark's prompts are its own: leave --system out",
}
"""Settings of one answer, and what is said where one is given for a benchmark."""
DEMO = "the demo runs no model, so there is nothing to measure: name a pair with --pair"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to run, and where it goes."""

    kinds: Annotated[list[str] | None, MANY] = None
    """Kinds of text: chat, writing, reasoning, maths, coding, editing, summarizing, translation; default: all."""
    temperatures: Annotated[list[str] | None, MANY] = None
    """Temperatures, such as 0,0.5,1 to see how acceptance falls; default: 0,0.8."""
    turns: int | None = None
    """How often each mode answers each prompt; default: 2."""
    tokens: int | None = None
    """Most tokens of an answer; default: by kind of text, from 128 to 720."""
    fixed: Annotated[list[str] | None, MANY] = None
    """Fixed lengths that are run beside off and auto; default: 3.  With more than one, auto is set against the best."""
    lookup_only: bool = False
    """Draft from the conversation alone, without a draft model."""
    dump_prompts: Path | None = None
    """Write the prompts into this folder, as the model's chat template makes them, and end."""
    json: bool = False
    """Print one JSON object a line for each kind of text, temperature and mode, and nothing else."""
    plot: Path | None = None
    """Draw measured and predicted speed by kind of text into this SVG file."""


def bench(*, asked: Annotated[Asked | None, Parameter(name="*")] = None, options: SETTINGS = None) -> int:
    """Measure how much faster answers come with drafts, by kind of text.

    Prompts of eight kinds are answered without drafts, with drafts of a fixed length and in mode auto, in turns. The
    ratio to no drafts is told with its bounds, and with what a perfect planner could have made of the same text and
    what theory predicts. All of it takes half an hour on two slow cores; Ctrl-C prints what is done.
    """
    asked, given = asked or Asked(), options or Settings()
    settings = load_settings(given, INSTEAD)
    if asked.lookup_only:
        if given.draft is not None:
            raise UsageError("--lookup-only runs no draft model: leave --draft out")
        settings = dataclasses.replace(settings, draft="none")
    plan, config = _plan(asked, settings), config_of(settings)
    if asked.dump_prompts is not None:
        return _dump(config, plan.kinds, asked.dump_prompts)
    return _Bench(config, plan, asked).run()


def listed(values: Sequence[str] | None) -> list[str] | None:
    """Values that are parted by commas, by blanks or by repeating the option."""
    return None if values is None else [part.strip() for value in values for part in value.split(",") if part.strip()]


def load_settings(given: Settings, instead: dict[str, str]) -> Settings:
    """All layers of settings; UsageError where one is given that means nothing here, or the demo is on."""
    from app import layers

    for name, advice in instead.items():
        if getattr(given, name) is not None:
            raise UsageError(advice)
    settings = layers.load(given)
    if settings.demo:
        raise UsageError(DEMO)
    return settings


def config_of(settings: Settings) -> "EngineConfig":
    """What to load, as `ask` would."""
    from app.choice import choose
    from app.paths import models_dir
    from models.library import Library

    return choose(settings, Library(models_dir()), require_draft=True).config


def _plan(asked: Asked, settings: Settings) -> "Plan":
    from msgspec.structs import replace

    from engine.experiments.bench_plan import SEED, Plan
    from engine.experiments.bench_prompts import KINDS

    kinds, temperatures, lengths = (listed(said) for said in (asked.kinds, asked.temperatures, asked.fixed))
    said = {
        "kinds": kinds and _known(kinds, list(KINDS)),
        "temperatures": temperatures and _numbers("temperatures", temperatures, float),
        "lengths": lengths and _numbers("fixed", lengths, int),
        "turns": asked.turns,
        "tokens": asked.tokens,
        "sampling": replace(settings.sampling, seed=SEED if settings.seed is None else settings.seed),
        "rule": settings.rule,
    }
    return dataclasses.replace(Plan(), **{name: value for name, value in said.items() if value is not None})


def _known(kinds: Sequence[str], known: Sequence[str]) -> list[str]:
    for kind in kinds:
        if kind not in known:
            raise UsageError(f"there is no kind of text {kind!r}: take {', '.join(known[:-1])} or {known[-1]}")
    return list(dict.fromkeys(kinds))


def _numbers(name: str, values: Sequence[str], kind: Callable[[str], float]) -> list[float]:
    try:
        return list(dict.fromkeys(kind(value) for value in values))
    except ValueError as error:
        raise UsageError(f"{name} must be numbers parted by commas, not {','.join(values)!r}") from error


def _dump(config: "EngineConfig", kinds: Sequence[str], folder: Path) -> int:
    """Write a file a prompt."""
    from msgspec.structs import replace

    from app.commands.bench_lines import Bar
    from engine.experiments.bench_dump import rendered
    from engine.loading import load_pair

    config = replace(config, draft=None, draft_name="", require_draft=False)
    with (
        Bar(sys.stderr) as bar,
        closing(load_pair(config, lambda loading: bar.show(loading.what, loading.share))) as pair,
    ):
        texts = rendered(pair.target.vocab, kinds)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_bytes(text)
    return 0


class _Bench:
    """One benchmark: what was run, and what of it was printed."""

    def __init__(self, config: "EngineConfig", plan: "Plan", asked: Asked) -> None:
        self._config, self._plan, self._asked = config, plan, asked
        self._runs: list[Run] = []
        self._printed = 0

    def run(self) -> int:
        """All of it; the exit code."""
        code = 0
        try:
            self._measure()
        except KeyboardInterrupt:
            code = INTERRUPTED
        self._print()
        self._end()
        return code

    def _measure(self) -> None:
        from app.commands.bench_lines import Bar
        from engine.engine import Engine
        from engine.experiments.bench import bench as runs
        from engine.experiments.bench_records import Run

        with (
            Bar(sys.stderr) as bar,
            closing(Engine.load(self._config, lambda loading: bar.show(loading.what, loading.share))) as engine,
        ):
            bar.notes(engine.loaded.notes)
            for event in runs(engine, self._plan):
                if not isinstance(event, Run):
                    bar.show(event.what, event.share)
                    continue
                if self._runs and self._runs[-1].kind != event.kind:
                    bar.clear()
                    self._print()
                self._runs.append(event)

    def _print(self) -> None:
        """The kinds that are done and were not printed yet."""
        import msgspec

        from app.commands.bench_lines import HEAD, table
        from engine.experiments.bench_figures import lines

        found = lines(self._runs[self._printed :])
        if self._asked.json:
            for line in found:
                print(msgspec.json.encode(line).decode(), flush=True)
        elif found:
            head = [] if self._printed else [HEAD]
            print("\n".join([*head, *table(found)]), flush=True)
        self._printed = len(self._runs)

    def _end(self) -> None:
        """What needs all runs."""
        from app.commands.bench_lines import rivals
        from app.commands.bench_plot import svg
        from engine.experiments.bench_figures import against_fixed, lines

        if not self._asked.json:
            for line in rivals(against_fixed(self._runs)):
                print(line)
        if self._asked.plot is not None and self._runs:
            self._asked.plot.write_text(svg(lines(self._runs)), encoding="utf-8")
