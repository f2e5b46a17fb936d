"""`paceline doctor`: whether a chat can start on this machine, and what to do where it cannot."""

import os
import platform
import stat
import sys
from importlib import metadata
from pathlib import Path

import msgspec

from app import paths
from app.last_used import LastUsed, last_used
from app.paths import shown
from engine.probe import Probe, probe
from engine.torch_probe import TorchProbe, probe_torch


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the program."""

    name: str
    path: str
    mode: str | None
    """As ls shows it; null where there is none yet."""
    private: bool
    """Whether others are kept out; true where there is none yet, and where modes mean nothing."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that the doctor finds."""

    ready: bool
    advice: list[str]
    """What to do, one sentence each; empty where a chat can start."""
    notes: list[str]
    """What is not as it should be, though a chat can start."""
    versions: dict[str, str]
    platform: str
    cpu: str
    cpu_features: list[str]
    cores: int
    """Logical CPUs of the machine."""
    threads: int
    """What a model would use."""
    threads_reason: str
    memory_total: int
    memory_available: int
    gpu_offload: bool
    gpu_reason: str
    torch: TorchProbe
    models: list[str]
    pairs: list[str]
    tuned: list[str]
    """Drafts that were tuned here, and whether the pair still takes them."""
    last_used: LastUsed
    folders: list[Folder]


def doctor(*, json: bool = False) -> int:
    """Say whether a chat can start here, and what to do where it cannot.

    Parameters
    ----------
    json
        Print one JSON object.
    """
    report = examine(probe(), probe_torch())
    print(msgspec.json.encode(report).decode() if json else "\n".join(lines(report)))
    return 0 if report.ready else 1


def examine(native: Probe, torch: TorchProbe) -> Report:
    """Look at this machine, given what the engines' libraries said."""
    import psutil

    from engine.threads import physical_cores
    from models import fit

    models, pairs, advice = _models()
    folders = [_folder(name, path) for name, path in _folders()]
    advice += [native.fault] if native.fault else []
    return Report(
        ready=not advice,
        advice=advice,
        notes=[f"others can read {folder.path}: chmod 700 it" for folder in folders if not folder.private],
        versions=_versions(native),
        platform=platform.platform(),
        cpu=_cpu_name(),
        cpu_features=native.features,
        cores=os.cpu_count() or 1,
        threads=physical_cores(),
        threads_reason=_threads_reason(),
        memory_total=psutil.virtual_memory().total,
        memory_available=fit.available(),
        gpu_offload=native.offload,
        gpu_reason=native.offload_reason,
        torch=torch,
        models=models,
        pairs=pairs,
        tuned=_tuned(),
        last_used=last_used(),
        folders=folders,
    )


def lines(report: Report) -> list[str]:
    """The report for people."""
    from engine.detokenize import sanitize
    from models.text import size

    rows = [
        *report.versions.items(),
        ("platform", report.platform),
        ("CPU", f"{report.cpu}; {' '.join(report.cpu_features) or 'features unknown'}"),
        ("threads", f"{report.threads} ({report.threads_reason})"),
        ("memory", f"{size(report.memory_available)} free of {size(report.memory_total)}"),
        ("GPU", f"{'used' if report.gpu_offload else 'not used'}: {report.gpu_reason or 'unknown'}"),
        ("torch engine", report.torch.line),
        ("models", ", ".join(report.models) or "none"),
        ("pairs", ", ".join(report.pairs) or "none"),
        *([("tuned drafts", "; ".join(report.tuned))] if report.tuned else []),
        *((folder.name, f"{folder.path} ({folder.mode or 'not made yet'})") for folder in report.folders),
        *(("note", note) for note in report.notes),
    ]
    shown = [f"{name:<17} {sanitize(value)}" for name, value in rows]
    return [*shown, "", *([f"to do: {sanitize(text)}" for text in report.advice] or ["a chat can start: paceline"])]


def _tuned() -> list[str]:
    """Tuned drafts, with what they were expected to gain, and those that this machine or these files made void."""
    from app import tuned

    return [f"{one.id} ({one.form}; {tuned.state(one)})" for one in tuned.records()]


def _models() -> tuple[list[str], list[str], list[str]]:
    """Installed models, installed pairs, and what to do about them or about the settings."""
    from app import layers
    from app.choice import choose
    from app.errors import AppError
    from app.settings import Settings
    from engine.errors import EngineError
    from models.errors import ModelsError
    from models.library import Library

    library = Library(paths.models_dir())
    models: list[str] = []
    pairs: list[str] = []
    try:
        models = [model.id for model in library.installed()]
        pairs = [pair.id for pair in library.installed_pairs()]
        choose(layers.load(Settings()), library)
    except (AppError, EngineError, ModelsError) as error:
        return models, pairs, [shown(str(error))]
    return models, pairs, []


def _versions(native: Probe) -> dict[str, str]:
    library = native.version or f"llama-cpp-python {_version('llama-cpp-python')}, which does not work"
    return {
        "paceline": _version("paceline"),
        "python": f"{platform.python_version()} ({shown(sys.executable)})",
        "llama-cpp-python": library.removeprefix("llama-cpp-python "),
        "textual": _version("textual"),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu_name() -> str:
    """The CPU's own name where the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
        names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _threads_reason() -> str:
    """What bounds the threads."""
    import psutil

    from engine.threads import cpu_quota

    quota, affinity = cpu_quota(), getattr(os, "sched_getaffinity", None)
    allowed, logical = len(affinity(0)) if affinity else os.cpu_count() or 1, os.cpu_count() or 1
    parts = [f"{psutil.cpu_count(logical=False) or 'unknown'} physical cores, {logical} logical"]
    parts += [f"{allowed} of them allowed by the affinity"] if allowed < logical else []
    parts += [f"{quota:g} CPUs granted by the control group"] if quota is not None else []
    return ", ".join(parts)


def _folders() -> list[tuple[str, Path]]:
    return [
        ("data", paths.data_dir()),
        ("models folder", paths.models_dir()),
        ("config", paths.config_dir()),
        ("cache", paths.cache_dir()),
        ("log", paths.log_dir()),
    ]


def _folder(name: str, path: Path) -> Folder:
    try:
        mode = path.stat().st_mode
    except OSError:
        return Folder(name=name, path=shown(path), mode=None, private=True)
    private = sys.platform == "win32" or not stat.S_IMODE(mode) & 0o077
    return Folder(name=name, path=shown(path), mode=stat.filemode(mode), private=private)
