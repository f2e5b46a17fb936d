"""What the measuring scripts share: the models from the environment, turns, medians with their spread."""

import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.config import EngineConfig, Message, Request, Sampling, Speculation
from engine.engine import Engine
from engine.events import Finished
from engine.experiments.turns import in_turns, ratios
from engine.stats import Answer


def model_path(name: str) -> Path:
    """The file that PACELINE_TEST_<name> names; `make bench` sets it."""
    value = os.environ.get(f"PACELINE_TEST_{name}")
    if not value or not Path(value).is_file():
        sys.exit(f"set PACELINE_TEST_{name} to a model file, or run make bench")
    return Path(value)


def header(what: str) -> None:
    """One line about the measurement."""
    import llama_cpp

    cpus = os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))
    print(f"# {what} | {platform.machine()}, {cpus} CPUs | python {platform.python_version()}, ", end="")
    print(f"llama-cpp-python {llama_cpp.__version__}", flush=True)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median [least, most]."""
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def engine(target: Path, draft: Path | None = None, **options: object) -> Engine:
    """Load a pair; measurements that the engine keeps go to a folder of the script's own."""
    cache = Path(tempfile.gettempdir()) / "paceline-bench"
    cache.mkdir(exist_ok=True)
    config = EngineConfig(target=target, draft=draft, cache_dir=cache, **options)  # type: ignore[arg-type]
    return Engine.load(config)


def ask(
    engine: Engine,
    prompt: str | Iterable[Message],
    sampling: Sampling | None = None,
    speculation: Speculation | None = None,
    max_tokens: int = 200,
) -> Answer:
    """One answer."""
    messages = (Message(role="user", content=prompt),) if isinstance(prompt, str) else tuple(prompt)
    request = Request(
        messages=messages,
        sampling=sampling or Sampling(temperature=0),
        speculation=speculation or Speculation(mode="off"),
        max_tokens=max_tokens,
    )
    *_, finished = engine.answer(request)
    assert isinstance(finished, Finished)
    return finished.answer


def spec(value: str) -> Speculation:
    """off, auto or a number, as on the command line."""
    return Speculation(mode="fixed", length=int(value)) if value.isdigit() else Speculation(mode=value)  # type: ignore[arg-type]


__all__ = ["ask", "engine", "header", "in_turns", "model_path", "ratios", "spec", "spread"]
