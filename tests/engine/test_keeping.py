"""Kept beside a conversation and taken up again: a new engine goes on as the old one would have, or reads again."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.calibration_store import Key
from engine.config import Sampling
from engine.context import Marks
from engine.engine import Engine
from engine.errors import DecodeFailed
from engine.keeping import RECORD
from engine.mapped import MappedModel
from engine.stats import Answer
from engine.token_map import TokenMap
from engine.verdict import Change
from tests.engine.vocabularies import Babbler, large, small
from tests.fakes import FaultyModel, engine_of, fixed, last, request

KEY = Key(file="f", library="l", cpu="c", device="cpu", threads=2)
GREEDY = Sampling(temperature=0)
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


def pair(seed: int = 0, draft: bool = True, **options: object) -> Engine:
    """The same engine as another process would load."""
    more = {"key": KEY, "change": Change(), **options}
    return engine_of(ToyLM(12, seed=seed), ToyLM(12, seed=seed, blur=0.3) if draft else None, **more)


def say(engine: Engine, prompt: list[int], tokens: int = 10, length: int = 3, sampling: Sampling = GREEDY) -> Answer:
    return last(engine.answer_ids(prompt, request(sampling, fixed(length), tokens)))


def talked(folder: Path, **options: object) -> Engine:
    """An engine that has said something, and kept it."""
    engine = pair(**options)  # type: ignore[arg-type]
    say(engine, PROMPT)
    assert engine.keep(folder).reason == ""
    return engine


def follow_up(engine: Engine) -> list[int]:
    return [*engine.context.ids, 7, 8, 9]


def same(one: Answer, other: Answer) -> bool:
    """Whether they are equal in all but time."""
    return (one.ids, one.cache, one.verdict, one.finish_reason) == (
        other.ids,
        other.cache,
        other.verdict,
        other.finish_reason,
    )


turns = st.lists(st.tuples(st.integers(2, 60), st.integers(0, 12), st.sampled_from([0, 3])), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(turns, st.integers(0, 5), st.booleans(), st.sampled_from([None, 11]))
def test_a_new_engine_goes_on_as_the_old_one_would_have(
    tmp_path_factory: pytest.TempPathFactory,
    turns: list[tuple[int, int, int]],
    seed: int,
    draft: bool,
    drawn: int | None,
) -> None:
    """Whatever was said before: the same text, receipts and verdict."""
    folder = tmp_path_factory.mktemp("kept")
    sampling = GREEDY if drawn is None else Sampling(temperature=1, seed=drawn)
    old, new = pair(seed, draft), pair(seed, draft)
    for number, (asked, tokens, length) in enumerate(turns):
        say(old, [*old.context.ids, *((number + at) % 12 for at in range(asked))], tokens, length, sampling)
    lengths = [cache.length for cache in old.context.caches]
    old.keep(folder)
    found = new.resume(folder)
    assert [found.target, *([] if found.draft is None else [found.draft])] == lengths
    assert (new.context.ids, new.context.marks, found.reason) == (old.context.ids, old.context.marks, "")
    prompt = follow_up(old)
    assert same(say(new, prompt, sampling=sampling), say(old, prompt, sampling=sampling))


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    old, new = talked(tmp_path), pair()
    new.resume(tmp_path)
    held = [cache.length for cache in old.context.caches]
    answer = say(new, follow_up(old))
    assert answer.cache.draft is not None
    assert [answer.cache.target.reused, answer.cache.draft.reused] == held
    assert held[0] > len(PROMPT)


def test_what_a_wide_pass_wrote_is_known_to_be_so(tmp_path: Path) -> None:
    """Else an answer without drafts would be called identical."""
    old = talked(tmp_path)
    assert old.context.holds_wide
    new = pair()
    new.resume(tmp_path)
    assert say(new, follow_up(old), length=0).verdict.kind != "identical"
    assert say(pair(), follow_up(old), length=0).verdict.kind == "identical"


def test_what_a_shift_moved_is_known_to_be_so(tmp_path: Path) -> None:
    old = pair()
    say(old, PROMPT)
    old.context.forget(2, 5)
    old.keep(tmp_path)
    new = pair()
    new.resume(tmp_path)
    assert say(new, follow_up(old)).verdict.kind == "unmeasured"


def test_a_target_without_its_draft_is_fine(tmp_path: Path) -> None:
    old = talked(tmp_path)
    (path,) = tmp_path.glob("draft-*")
    path.unlink()
    new = pair()
    found = new.resume(tmp_path)
    assert (found.target, found.draft) == (old.context.target.length, 0)
    assert "draft-" in found.reason
    assert say(new, follow_up(old)).ids == say(old, follow_up(old)).ids


def test_a_pair_takes_up_what_a_target_alone_has_kept_and_the_other_way_round(tmp_path: Path) -> None:
    for before, after in ((False, True), (True, False)):
        old = talked(tmp_path, draft=before)
        new = pair(draft=after)
        found = new.resume(tmp_path)
        assert (found.target, found.draft) == (old.context.target.length, 0 if after else None)
        assert found.reason == ""
        assert say(new, follow_up(old)).ids == say(old, follow_up(old)).ids


def test_a_draft_with_other_tokens(tmp_path: Path) -> None:
    def mapped() -> Engine:
        draft = MappedModel(Babbler(small(), 1), TokenMap(large(), small()))
        return engine_of(Babbler(large(), 2), draft, change=Change())

    old, new = mapped(), mapped()
    say(old, PROMPT, tokens=20)
    assert old.context.draft is not None
    assert old.context.draft.length
    old.keep(tmp_path)
    found = new.resume(tmp_path)
    assert (found.draft, found.reason) == (old.context.draft.length, "")
    assert new.context.draft is not None
    assert new.context.draft.model.n_ctx == old.context.draft.model.n_ctx != mapped().context.draft.model.n_ctx  # type: ignore[union-attr]
    assert same(say(new, follow_up(old)), say(old, follow_up(old)))


def damage(how: str, path: Path, place: int) -> None:
    whole = path.read_bytes()
    place %= len(whole)
    match how:
        case "flip":
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        case "cut":
            path.write_bytes(whole[:place])
        case "foreign":
            path.write_bytes(b"[" * (place + 1))
        case "gone":
            path.unlink()
        case "folder":
            path.unlink()
            path.mkdir()


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["flip", "cut", "foreign", "gone", "folder"]), st.integers(0, 2), st.integers(0, 10**6))
def test_what_is_damaged_is_read_again_and_nothing_worse(
    tmp_path_factory: pytest.TempPathFactory, how: str, which: int, place: int
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    old = talked(folder)
    damage(how, sorted(folder.iterdir())[which], place)
    new = pair()
    found = new.resume(folder)
    assert found.reason.count(".") <= 1
    assert "\n" not in found.reason
    if found.target < old.context.target.length or found.draft == 0:
        assert "read again" in found.reason
    assert say(new, follow_up(old)).ids == say(old, follow_up(old)).ids
    old.keep(folder)
    assert pair().resume(folder).reason == "", "what was damaged has been replaced"


def test_no_other_ids_are_taken_for_those_of_a_cache(tmp_path: Path) -> None:
    """A wrong digit is as good JSON as a right one."""
    talked(tmp_path)
    record = tmp_path / RECORD
    whole = record.read_bytes()
    assert whole.count(b'"ids":[3,1,4') == 1
    record.write_bytes(whole.replace(b'"ids":[3,1,4', b'"ids":[3,1,5'))
    assert "damaged" in pair().resume(tmp_path).reason


def test_a_cache_that_was_written_otherwise_since_is_kept_anew(tmp_path: Path) -> None:
    """Though it is of the same ids."""
    engine = pair(draft=False)
    plain = say(engine, PROMPT, length=0)
    engine.keep(tmp_path)
    assert say(engine, PROMPT).ids == plain.ids
    assert engine.context.holds_wide
    engine.keep(tmp_path)
    new = pair(draft=False)
    new.resume(tmp_path)
    assert new.context.holds_wide


def test_the_cache_of_another_conversation_is_refused(tmp_path: Path) -> None:
    """Though it is whole, of the same model and as long."""
    old = talked(tmp_path / "one")
    other = pair()
    say(other, PROMPT[::-1])
    other.keep(tmp_path / "other")
    for role in ("target", "draft"):
        (mine,), (theirs,) = (list((tmp_path / name).glob(f"{role}-*")) for name in ("one", "other"))
        mine.write_bytes(theirs.read_bytes())
    new = pair()
    found = new.resume(tmp_path / "one")
    assert (found.target, found.draft) == (0, 0)
    assert "not the one that was kept" in found.reason
    assert say(new, follow_up(old)).ids == say(old, follow_up(old)).ids


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"key": msgspec.structs.replace(KEY, file="g")}, "another model file"),
        ({"key": msgspec.structs.replace(KEY, library="m")}, "another version of the engine"),
        ({"key": msgspec.structs.replace(KEY, cpu="d")}, "another processor"),
        ({"key": msgspec.structs.replace(KEY, threads=1)}, "with threads 2, here it is 1"),
        ({"key": msgspec.structs.replace(KEY, kv="q8_0")}, "with cache type None, here it is q8_0"),
        ({"key": msgspec.structs.replace(KEY, gpu_layers=3)}, "with gpu layers -1, here it is 3"),
        ({"key": None}, "by other models"),
        ({"exact": "strict"}, "strict exactness takes only its own"),
    ],
)
def test_what_another_setting_computed_is_read_again_with_the_reason(
    tmp_path: Path, options: dict[str, object], why: str
) -> None:
    old = talked(tmp_path)
    new = pair(**options)  # type: ignore[arg-type]
    say(new, PROMPT, tokens=2)
    found = new.resume(tmp_path)
    assert (found.target, found.draft) == (0, 0)
    assert found.found
    assert why in found.reason
    assert found.reason.endswith("read again")
    assert say(new, follow_up(old)).ids == say(old, follow_up(old)).ids


def test_threads_do_not_count_where_results_do_not_depend_on_them(tmp_path: Path) -> None:
    class Steady(ToyLM):
        threads, same_on_any_threads = 2, True

        def use_threads(self, count: int) -> None:
            pass

    old = engine_of(Steady(12), key=KEY)
    say(old, PROMPT, length=0)
    old.keep(tmp_path)
    new = engine_of(Steady(12), key=msgspec.structs.replace(KEY, threads=1))
    assert new.resume(tmp_path).target == old.context.target.length


def test_what_strict_exactness_kept_is_good_for_both(tmp_path: Path) -> None:
    old = talked(tmp_path, exact="strict")
    assert pair(exact="strict").resume(tmp_path).target == old.context.target.length
    assert pair().resume(tmp_path).target == old.context.target.length


def test_a_context_that_is_too_small_reads_what_fits_again(tmp_path: Path) -> None:
    talked(tmp_path)
    small_one = engine_of(ToyLM(12, n_ctx=8), key=KEY)
    found = small_one.resume(tmp_path)
    assert found.target == 0
    assert "read again" in found.reason


def test_nothing_was_kept(tmp_path: Path) -> None:
    found = pair().resume(tmp_path / "nowhere")
    assert (found.target, found.draft, found.reason) == (0, 0, "nothing was kept of it: the conversation is read again")
    assert not found.found
    assert pair(draft=False).resume(tmp_path).draft is None


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_files_are_private_and_replace_those_before(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "one"
    engine = talked(folder)
    first = names(folder)
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    assert engine.keep(folder).bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert names(folder) == first, "nothing new was written"
    say(engine, follow_up(engine))
    engine.keep(folder)
    assert names(folder) & first == {RECORD}
    assert len(names(folder)) == 3


def test_what_a_dead_process_left_half_done_is_swept_and_nothing_else(tmp_path: Path) -> None:
    engine = pair()
    left = ["target-00ff.cache", ".draft-00ff.cache-abc.part", f".{RECORD}-abc.part"]
    for name in [*left, "notes.txt"]:
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    say(engine, PROMPT)
    engine.keep(tmp_path)
    assert names(tmp_path) & {*left, "notes.txt"} == {"notes.txt"}


def test_two_processes_that_keep_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one keeps while the first is between its two files: neither removes what the other writes."""
    first, second = talked(tmp_path), pair()
    say(first, follow_up(first))
    say(second, PROMPT[::-1])
    save: Callable[[ToyLM, Path], None] = ToyLM.save

    def between(model: ToyLM, path: Path) -> None:
        save(model, path)
        if path.name.startswith("target"):
            monkeypatch.setattr(ToyLM, "save", save)
            assert second.keep(tmp_path).outcome == "kept"
            assert pair().resume(tmp_path).target == second.context.target.length

    monkeypatch.setattr(ToyLM, "save", between)
    assert first.keep(tmp_path).outcome == "kept"
    assert pair().resume(tmp_path).target == first.context.target.length
    assert len(names(tmp_path)) == 3, "what the record named before is removed by whoever replaces it"


def test_where_nothing_was_read_what_is_there_stays(tmp_path: Path) -> None:
    old = talked(tmp_path)
    kept = pair().keep(tmp_path)
    assert "nothing to keep" in kept.reason
    assert kept.outcome == "nothing to keep"
    assert kept.bytes > 0
    assert pair().resume(tmp_path).target == old.context.target.length


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = talked(tmp_path)
    before, held = names(tmp_path), engine.context.target.length
    say(engine, follow_up(engine))
    save: Callable[[ToyLM, Path], None] = ToyLM.save

    def full(model: ToyLM, path: Path) -> None:
        save(model, path)
        if path.name.startswith(role):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(ToyLM, "save", full)
    kept = engine.keep(tmp_path)
    assert "No space left" in kept.reason
    assert kept.outcome == "failed"
    assert names(tmp_path) == before
    assert pair().resume(tmp_path).target == held


def test_a_folder_that_cannot_be_made_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    engine = pair()
    say(engine, PROMPT)
    kept = engine.keep(tmp_path / "file")
    assert "cannot be kept" in kept.reason
    assert kept.bytes == 0
    assert "damaged" in pair().resume(tmp_path / "file").reason


def test_a_cache_that_counts_as_unknown_is_not_kept(tmp_path: Path) -> None:
    target = FaultyModel(ToyLM(12))
    engine = engine_of(target, ToyLM(12, blur=0.3))
    say(engine, PROMPT)
    engine.context.target.doubt()
    engine.keep(tmp_path)
    assert {name.partition("-")[0] for name in names(tmp_path)} == {"draft", RECORD}


def test_what_is_taken_up_is_looked_up_in(tmp_path: Path) -> None:
    """Copies come from the conversation that was taken up, as from one that was read, and not from the one before."""
    phrase = [1, 2, 3, 4, 5, 6, 7, 8]
    old = engine_of(ToyLM(12), key=KEY)
    say(old, phrase * 3, tokens=1, length=0)
    old.keep(tmp_path)
    new = engine_of(ToyLM(12), key=KEY)
    say(new, [1, 2, 3, 9] * 20, tokens=1)
    new.resume(tmp_path)
    prompt = [*old.context.ids, 1, 2, 3]
    assert say(new, prompt, length=4).speculation == say(old, prompt, length=4).speculation


@pytest.mark.parametrize("kept", ["nothing", "another model's", "damaged", "caches that are gone"])
def test_what_is_held_is_never_kept_as_another_conversation_s(tmp_path: Path, kept: str) -> None:
    """Whatever the folder of the conversation that is gone over to yields, nothing of the one before stays."""
    folder = tmp_path / "other"
    if kept != "nothing":
        talked(folder, key=msgspec.structs.replace(KEY, file="g") if kept == "another model's" else KEY)
    if kept == "damaged":
        (folder / RECORD).write_text("x")
    if kept == "caches that are gone":
        for path in folder.glob("*.cache"):
            path.unlink()
    engine = pair()
    say(engine, PROMPT[::-1])
    found = engine.resume(folder)
    assert (found.target, found.draft) == (0, 0)
    assert (engine.context.ids, engine.context.marks) == ([], Marks())
    assert [cache.model.length for cache in engine.context.caches] == [0, 0]
    assert "nothing to keep" in engine.keep(folder).reason
    assert (folder / RECORD).exists() == (kept != "nothing")


class Weighed(ToyLM):
    """Knows what its cache takes on the disk."""

    size = 1000

    def saved_size(self) -> int:
        return self.size

    def save(self, path: Path) -> None:
        path.write_bytes(b"x" * self.size)


@pytest.mark.parametrize("kind", [ToyLM, Weighed])
def test_caches_that_take_too_much_are_not_kept(
    tmp_path: Path, kind: type[ToyLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor even written, where the models know what they take; what was there stays."""
    old = talked(tmp_path)
    before = names(tmp_path)
    engine = engine_of(kind(12), kind(12, blur=0.3), key=KEY)
    say(engine, PROMPT[::-1])
    whole = engine.keep(tmp_path / "all").bytes - (tmp_path / "all" / RECORD).stat().st_size
    saved: list[Path] = []
    save = kind.save
    monkeypatch.setattr(kind, "save", lambda model, path: (saved.append(path), save(model, path)))
    kept = engine.keep(tmp_path, whole - 1)
    assert kept.reason.startswith(f"the caches take {whole:,} bytes and may take {whole - 1:,}: ")
    assert kept.outcome == "too large"
    assert names(tmp_path) - {"all"} == before
    assert bool(saved) == (kind is ToyLM)
    assert pair().resume(tmp_path).target == old.context.target.length
    assert engine.keep(tmp_path, whole).reason == ""


@pytest.mark.parametrize("error", [MemoryError(), DecodeFailed("the model is closed: load it again")])
def test_a_cache_that_cannot_be_had_is_a_reason(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = talked(tmp_path)
    before = names(tmp_path)
    say(engine, follow_up(engine))

    def fail(_model: ToyLM, _path: Path) -> None:
        raise error

    monkeypatch.setattr(ToyLM, "save", fail)
    assert "cannot be kept" in engine.keep(tmp_path).reason
    assert names(tmp_path) == before


def test_the_copy_of_a_mapped_cache_lies_beside_it_and_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere there may be no room for it; a process that dies leaves it to the next `keep`."""
    draft = MappedModel(Babbler(small(), 1), TokenMap(large(), small()))
    engine = engine_of(Babbler(large(), 2), draft, change=Change())
    say(engine, PROMPT)
    engine.keep(tmp_path)
    before, seen = names(tmp_path), set[str]()
    load: Callable[[Babbler, Path], None] = Babbler.load

    def watched(model: Babbler, path: Path) -> None:
        seen.update(names(tmp_path) - before)
        load(model, path)

    monkeypatch.setattr(Babbler, "load", watched)
    assert engine.resume(tmp_path).reason == ""
    assert names(tmp_path) == before
    assert len(seen) == 1
    for name in seen:
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    say(engine, follow_up(engine))
    engine.keep(tmp_path)
    assert names(tmp_path).isdisjoint(seen)
