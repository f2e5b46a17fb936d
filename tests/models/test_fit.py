"""Memory: the estimate against what llama.cpp reported, the longest context, and the limits of control groups."""

import struct
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import catalogue, fit
from models.errors import NotWritable
from models.facts import facts
from models.gguf import read
from tests.models.tinygguf import described, entry, gguf, number, tensor, tiny

MB = 1 << 20
CODER, SMALL, SMOL = (fit.of_entry(one) for one in catalogue.load().models.values())


@pytest.mark.parametrize(
    ("load", "n_ctx", "kv", "reported"),
    [
        (CODER, 2048, "f16", 56.0),
        (CODER, 8192, "f16", 224.0),
        (CODER, 8192, "q8_0", 119.0),
        (SMALL, 2048, "f16", 24.0),
        (SMOL, 2048, "f16", 45.0),
    ],
)
def test_the_cache_is_as_large_as_llama_cpp_reports(
    load: fit.Load, n_ctx: int, kv: fit.CacheType, reported: float
) -> None:
    assert fit.cache_bytes(load.facts, n_ctx, kv) == reported * MB


@pytest.mark.parametrize(
    ("load", "n_ctx", "reported"),
    [(CODER, 8192, 305.75), (CODER, 16384, 432.01), (SMALL, 2048, 300.25), (SMOL, 2048, 102.51), (SMOL, 8192, 166.38)],
)
def test_the_sums_fit_into_what_is_counted_for_them(load: fit.Load, n_ctx: int, reported: float) -> None:
    counted = fit.need([load], n_ctx) - load.weights - fit.cache_bytes(load.facts, n_ctx) - fit.need([], n_ctx)
    assert reported * MB <= counted <= (reported + 30) * MB


@given(
    wanted=st.integers(1, 40_000),
    budget=st.integers(0, 6 << 30),
    kv=st.sampled_from(["f16", "q8_0", "q4_0"]),
    both=st.booleans(),
)
def test_the_longest_context_fits_and_the_next_does_not(
    wanted: int, budget: int, kv: fit.CacheType, both: bool
) -> None:
    loads = [CODER, SMALL] if both else [CODER]
    found = fit.largest_context(loads, wanted, budget, kv)
    most = min(wanted, CODER.facts.n_ctx_train)
    assert 0 <= found <= most
    assert found == 0 or fit.need(loads, found, kv) <= budget
    if found < most:
        assert fit.need(loads, min(most, found + fit.STEP), kv) > budget


def test_heads_may_differ_by_layer_and_keys_from_values(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    by_layer = entry("llama.attention.head_count_kv", 9, struct.pack("<IQII", 4, 2, 1, 3))
    entries = [*described(), by_layer, number("llama.attention.key_length", 6)]
    path.write_bytes(gguf(entries, [tensor("t", [8], 0, 0)], bytes(32)))
    shape = facts(read(path))
    assert (shape.n_layer, shape.n_head, shape.n_vocab) == (2, 2, 32)
    assert shape.kv_width == (1 + 3) * (6 + 4)


def test_the_load_of_a_file_is_its_length_and_its_facts(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(tiny())
    assert fit.of_file(path) == fit.Load(weights=len(tiny()), facts=facts(read(path)))


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match=r"gone\.gguf cannot be read"):
        fit.of_file(tmp_path / "gone.gguf")


def test_control_groups_whose_names_are_no_text(tmp_path: Path) -> None:
    proc, mount = groups(tmp_path, "0::/\n", {"memory.max": "1000", "memory.current": "400"})
    (mount / "memory.stat").write_bytes(b"\xff\xfe 1\n")
    assert fit.available(proc, mount) == 600
    proc.write_bytes(b"0::/\xff\xfe\n")
    assert fit.available(proc, mount) > 0


def groups(folder: Path, line: str, files: dict[str, str]) -> tuple[Path, Path]:
    proc, mount = folder / "cgroup", folder / "fs"
    proc.write_text(line)
    for name, content in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(content)
    return proc, mount


@pytest.mark.parametrize(
    ("line", "files", "left"),
    [
        ("0::/\n", {"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ("0::/\n", {"memory.max": "1000", "memory.current": "400", "memory.stat": "anon 5\ninactive_file 100"}, 700),
        ("0::/a/b\n", {"a/memory.max": "900", "a/memory.current": "100", "a/b/memory.max": "max"}, 800),
        ("0::/a/b\n", {"a/memory.max": "900", "a/memory.current": "950"}, 0),
        (
            "5:cpu:/x\n3:memory:/d\n",
            {"memory/d/memory.limit_in_bytes": "50", "memory/d/memory.usage_in_bytes": "20"},
            30,
        ),
        ("0::/../..\n", {"memory.max": "70", "memory.current": "1"}, 69),
    ],
)
def test_control_groups_limit_what_is_available(tmp_path: Path, line: str, files: dict[str, str], left: int) -> None:
    assert fit.available(*groups(tmp_path, line, files)) == left


@pytest.mark.parametrize(
    ("line", "files"),
    [("", {}), ("0::/\n", {}), ("0::/\n", {"memory.max": "max", "memory.current": "5"}), ("nonsense", {})],
)
def test_without_a_limit_the_machine_is_the_limit(tmp_path: Path, line: str, files: dict[str, str]) -> None:
    assert 0 < fit.available(*groups(tmp_path, line, files)) <= psutil.virtual_memory().total


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    assert fit.available(tmp_path / "none", tmp_path) > 0
