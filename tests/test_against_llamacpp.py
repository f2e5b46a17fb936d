"""Against llama.cpp's programs: their best mode is chosen in one half of the turns and judged in the other."""

import json
from pathlib import Path

import pytest

from tests.bench.against_llamacpp import best, main, theirs


def line(prompt: str, mode: str, *ratio: float) -> dict[str, object]:
    return {"prompt": prompt, "mode": mode, "ratio": dict(zip(("median", "min", "max"), ratio, strict=True))}


FIRST = [
    line("coding-1", "plain", 1, 1, 1),
    line("coding-1", "ngram", 2, 1.5, 3),
    line("coding-2", "ngram", 0.5, 0.4, 0.75),
    line("coding-1", "draft-3", 1.4, 1.2, 1.5),
    line("coding-2", "draft-3", 1.4, 1.2, 1.5),
    line("chat-1", "ngram", 0.9, 0.8, 0.95),
    {"prompt": "chat-1", "mode": "draft-3", "error": "no such file"},
]


def test_prompts_of_a_kind_count_alike_and_plain_is_a_mode() -> None:
    found = theirs(FIRST)
    assert found["coding"]["ngram"] == pytest.approx((1, 0.6**0.5, 2.25**0.5))
    assert found["coding"]["draft-3"] == pytest.approx((1.4, 1.2, 1.5))
    assert best(found["coding"])[0] == "draft-3"
    assert best(found["chat"]) == ("plain", (1, 1, 1))


def test_the_other_half_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    auto = {"mode": "auto", "temperature": 0.0, "low": 1.2, "high": 1.32}
    ours = [
        {**auto, "kind": "coding", "ratio": 1.26},
        {**auto, "kind": "chat", "ratio": 0.99, "low": None, "high": None},
    ]
    ours += [{**auto, "kind": "maths", "ratio": 1.0}, {**auto, "kind": "coding", "mode": "off", "ratio": 1.0}]
    second = [line("coding-1", "draft-3", 1.05, 1.0, 1.1), line("coding-1", "ngram", 9, 9, 9), FIRST[5]]
    files = []
    for name, lines in (("ours", ours), ("first", FIRST), ("second", second)):
        files.append(tmp_path / name)
        files[-1].write_text("\n".join(map(json.dumps, lines)))
    main(*map(str, files))
    _, coding, chat, maths = capsys.readouterr().out.splitlines()
    assert coding.endswith("draft-3 1.050 [1.000, 1.100]; 1.200 [1.091, 1.320]: holds")
    assert chat.endswith("plain 1.000 [1.000, 1.000]; 0.990 [0.990, 0.990]: does not hold")
    assert maths == "maths: not in all three"
