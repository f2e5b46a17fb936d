"""The library of earlier answers: whatever happens to its file, what comes out of it went in."""

import random
import stat
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.config import EngineConfig, Sampling
from engine.drafters.library import FRESH_TOKENS, LEAST_TOKENS, Library
from engine.drafters.library_file import MARK, Answers, LibraryFile, name_of
from engine.drafters.lookup import LookupDrafter
from engine.drafters.places import SEPARATOR
from engine.engine import Engine
from engine.pair import Pair
from engine.stats import Answer
from tests.fakes import fixed, last, request

SIZE = 1000
ANSWERS = st.lists(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=20), max_size=6)
number = count()


def said(seed: int, length: int = 40) -> list[int]:
    """An answer that is like no other."""
    return random.Random(seed).choices(range(SIZE), k=length)


def packed(answers: Sequence[Sequence[int]]) -> Answers:
    return {name_of(tokens): np.array(tokens, np.uint32) for tokens in answers}


def read(file: LibraryFile, most: int = 1 << 20) -> list[list[int]]:
    return [tokens.tolist() for tokens in file.read(most).values()]


def a_file(folder: Path, answers: Sequence[Sequence[int]] = ()) -> tuple[LibraryFile, Path]:
    path = folder / f"{next(number)}" / "answers"
    file = LibraryFile(path, SIZE)
    file.append((), (), packed(answers))
    return file, path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library")


@given(answers=ANSWERS, cut=st.integers(0, 400), other=st.binary(max_size=40), again=ANSWERS)
def test_what_is_read_was_written_whatever_the_damage(
    folder: Path, answers: list[list[int]], cut: int, other: bytes, again: list[list[int]]
) -> None:
    file, path = a_file(folder, answers)
    kept = list(packed(answers).values())
    if answers:
        path.write_bytes(path.read_bytes()[:cut] + other)
    damaged = read(file)
    assert damaged == [tokens.tolist() for tokens in kept][: len(damaged)]
    file.append((), (), packed(again))
    assert [tokens for tokens in read(file) if tokens in again] == [t.tolist() for t in packed(again).values()]


@given(answers=ANSWERS, at=st.integers(0, 10**6), flipped=st.integers(1, 255))
def test_a_damaged_byte_costs_one_answer(folder: Path, answers: list[list[int]], at: int, flipped: int) -> None:
    file, path = a_file(folder, answers)
    whole = read(file)
    if answers:
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= flipped
        path.write_bytes(data)
    left = read(file)
    assert len(left) >= len(whole) - 1
    assert [tokens for tokens in whole if tokens in left] == left


@given(st.lists(st.tuples(st.sampled_from("aud"), st.integers(0, 4)), max_size=20), st.integers(0, 100))
def test_the_least_recently_used_leave(folder: Path, steps: list[tuple[str, int]], most: int) -> None:
    file, _ = a_file(folder)
    known: list[int] = []
    for step, which in steps:
        tokens = said(which, 20)
        if step == "a":
            file.append((), (), packed([tokens]))
        else:
            names = [name_of(tokens)]
            file.append(names if step == "u" else (), names if step == "d" else (), {})
        was_there = which in known
        known = [other for other in known if other != which]
        if step == "a" or (step == "u" and was_there):
            known.append(which)
    left = read(file, most)
    assert left == [said(which, 20) for which in known][-(most // 20) :] * (most >= 20)


def test_a_file_that_is_mostly_waste_is_written_anew_and_goes_on(folder: Path) -> None:
    file, path = a_file(folder, [said(seed, 900) for seed in range(40)])
    before = path.stat().st_size
    assert len(read(file, 9000)) == 10
    assert path.stat().st_size < before / 3
    file.append((), (), packed([said(99)]))
    assert read(file) == [*(said(seed, 900) for seed in range(30, 40)), said(99)]
    assert [part.name for part in path.parent.iterdir()] == [path.name]


def test_files_and_folders_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "answers"
    file = LibraryFile(path, SIZE)
    file.append((), (), packed([said(seed, 900) for seed in range(40)]))
    for _ in range(2):
        modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)]
        assert modes == [0o600, 0o700, 0o700]
        read(file, 9000)


def test_what_cannot_be_kept_is_remembered_while_it_lasts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    library = Library(LibraryFile(tmp_path / "file" / "answers", SIZE))
    library.add(said(1))
    assert copies(library, said(1))
    assert not copies(library, said(2))


def test_ids_that_are_no_tokens_are_not_taken(folder: Path) -> None:
    file, _ = a_file(folder, [[1, SIZE], [1, SIZE - 1]])
    assert read(file) == [[1, SIZE - 1]]


def test_each_vocabulary_has_a_file_of_its_own(tmp_path: Path) -> None:
    one, other = ToyLM(5).vocab, ToyLM(6).vocab
    ids = [0, 1, 2, 3, 4] * 4
    for_one, nowhere = Library.of(tmp_path, one), Library.of(None, one)
    assert for_one is not None
    assert nowhere is None
    for_one.add(ids)
    again, for_other = Library.of(tmp_path, one), Library.of(tmp_path, other)
    assert again is not None
    assert for_other is not None
    assert (len(again.parts[0].text), len(for_other.parts[0].text)) == (len(ids) + 1, 0)


def copies(library: Library, ids: Sequence[int]) -> bool:
    """Whether an answer is offered from its third token on, by what `propose` then counts as used."""
    drafter = LookupDrafter(frozenset(), library)
    offer = drafter.offer(ids[:3], len(ids))
    assert len(drafter.propose(len(ids))) == (offer.length if offer else 0)
    return offer is not None and list(offer.tokens) == list(ids[3:])


def test_two_processes_lose_nothing(folder: Path) -> None:
    file, _ = a_file(folder)
    first, second = Library(file), Library(file)
    for seed in range(0, 6, 2):
        first.add(said(seed))
        second.add(said(seed + 1))
    assert [copies(Library(file), said(seed)) for seed in range(6)] == [True] * 6
    assert [copies(first, said(seed)) for seed in range(6)] == [True, False] * 3


def test_an_answer_that_was_copied_from_stays(folder: Path) -> None:
    file, _ = a_file(folder, [said(1), said(2)])
    library = Library(file, most=90)
    assert copies(library, said(1))
    library.add(said(3, LEAST_TOKENS - 1))
    library.add(said(4))
    again = Library(file, most=90)
    assert [copies(again, said(seed)) for seed in (1, 2, 4)] == [True, False, True]


def test_an_answer_that_repeats_one_takes_its_place(folder: Path) -> None:
    file, _ = a_file(folder)
    library = Library(file)
    old = said(1, 60)
    new = [*old[:20], 7, *old[21:]]
    for tokens in (old, new, new, new[:57]):
        library.add(tokens)
    assert read(file) == [new]
    for seen in (library, Library(file)):
        assert copies(seen, new)
        assert not copies(seen, old)


def test_two_forms_of_an_answer_take_turns(folder: Path) -> None:
    file, _ = a_file(folder)
    library = Library(file)
    one = said(1, 60)
    other = [*one[:20], 7, *one[21:]]
    for last_said, before in ((one, None), (other, one), (one, other), (other, one)):
        library.add(last_said)
        assert read(file) == [last_said]
        assert copies(library, last_said)
        assert before is None or not copies(library, before)
        assert sum(token != SEPARATOR for part in library.parts for token in part.text) == 60


def test_a_use_is_noted_once(folder: Path) -> None:
    file, path = a_file(folder, [said(1)])
    library = Library(file)
    sizes = [path.stat().st_size]
    assert copies(library, said(1))
    for _ in range(2):
        library.add(said(2, 3))
        sizes.append(path.stat().st_size)
    assert sizes[0] < sizes[1] == sizes[2]


def test_an_answer_with_much_of_its_own_is_kept_beside_the_other(folder: Path) -> None:
    file, _ = a_file(folder)
    library = Library(file)
    old = said(1, 100)
    new = [*old[:60], *said(2, 40)]
    for tokens in (old, new):
        library.add(tokens)
    assert read(file) == [old, new]


def test_what_has_come_is_sorted_in_when_it_is_much(folder: Path) -> None:
    file, _ = a_file(folder)
    library = Library(file)
    library.add(said(0, FRESH_TOKENS - 2))
    assert not library.parts[0].text
    library.add(said(1))
    assert not library.parts[1].text
    assert len(library.parts[0].text) == FRESH_TOKENS + 40
    assert copies(library, said(1))


def test_a_file_of_something_else_counts_as_empty(folder: Path) -> None:
    file, path = a_file(folder, [said(1)])
    path.write_bytes(MARK * 50 + b"no answers" * 20)
    assert read(file) == []


def answer(engine: Engine, prompt: Sequence[int], length: int = 40, draft: int = 0) -> Answer:
    return last(engine.answer_ids(prompt, request(Sampling(temperature=0), fixed(draft), length)))


def test_an_engine_keeps_its_answers_and_copies_from_them(tmp_path: Path) -> None:
    def engine() -> Engine:
        target = ToyLM(50, seed=3)
        return Engine(Pair(target), library=Library.of(tmp_path, target.vocab))

    prompt = [3, 1, 4]
    plain = answer(engine(), prompt)
    again = answer(engine(), [*prompt, *plain.ids[:3]], 37, 8)
    assert again.ids == plain.ids[3:]
    assert again.speculation.acceptance_rate is not None
    assert again.speculation.accepted > 20


def test_an_engine_without_a_folder_keeps_nothing(tmp_path: Path) -> None:
    engine = Engine.load(EngineConfig(target=tmp_path, backend="demo"))
    assert answer(engine, [1, 2, 3], 20).ids
    assert list(tmp_path.iterdir()) == []
