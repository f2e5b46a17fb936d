"""The shelf of this machine: what it lists, and what it does with small files of its own."""

from pathlib import Path

import pytest

from app.errors import AppError, NothingInstalled
from app.settings import Settings
from app.setup import Fetched
from app.shelf import ModelShelf
from engine.errors import EngineError
from models.errors import ModelsError, NotInstalled
from tests.models.tinygguf import tiny


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelShelf:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PACELINE_OFFLINE", "1")
    return ModelShelf(Settings())


def silent(_: Fetched) -> None:
    pass


def never() -> bool:
    return False


def added(shelf: ModelShelf, tmp_path: Path, name: str = "Mine.gguf") -> str:
    (tmp_path / name).write_bytes(tiny())
    return shelf.add(f" {tmp_path / name} ", silent, never)


def test_the_catalogue_is_listed_with_sizes_licences_and_memory(shelf: ModelShelf) -> None:
    offers, known = shelf.offers(), shelf.models()
    assert {id for offer in offers for id in offer.models} <= {model.id for model in known}
    assert not any(offer.installed for offer in offers)
    for model in known:
        assert (model.state, model.here, bool(model.licence)) == ("not installed", False, True)
        assert model.memory is not None
        assert model.memory > model.bytes
        assert model.available > 0


def test_a_file_is_added_listed_checked_loaded_and_forgotten(shelf: ModelShelf, tmp_path: Path) -> None:
    id = added(shelf, tmp_path)
    mine = shelf.models()[-1]
    assert (mine.id, mine.state, mine.here, mine.licence) == (id, "added", True, None)
    assert mine.memory is not None
    shelf.verify(id, silent, never)
    config = shelf.config_of(id, None)
    assert (config.target, config.draft) == (tmp_path / "Mine.gguf", None)
    other = added(shelf, tmp_path, "Other.gguf")
    config = shelf.config_of(id, other)
    assert (config.target_name, config.draft_name) == (id, other)
    shelf.remove(id)
    assert id not in {model.id for model in shelf.models()}
    assert (tmp_path / "Mine.gguf").exists()


def test_a_file_that_is_broken_or_gone_is_listed_so(shelf: ModelShelf, tmp_path: Path) -> None:
    id = added(shelf, tmp_path)
    (tmp_path / "Mine.gguf").write_bytes(b"GGUF")
    assert {model.id: model.state for model in shelf.models()}[id] == "damaged"
    (tmp_path / "Mine.gguf").unlink()
    gone = shelf.models()[-1]
    assert (gone.id, gone.state, gone.here, gone.memory) == (id, "gone", False, None)


def test_what_is_not_here_is_refused_with_what_to_do(shelf: ModelShelf) -> None:
    with pytest.raises(NotInstalled, match="paceline models pull"):
        shelf.draft_fit("qwen2.5-coder-1.5b-q4_k_m", "qwen2.5-coder-0.5b-q4_k_m")
    with pytest.raises(NotInstalled):
        shelf.remove("coder")
    with pytest.raises((ModelsError, AppError, EngineError)):
        shelf.config_of("smollm2-135m-q4_1", None)
    with pytest.raises(ModelsError, match="not there"):
        shelf.add("nowhere.gguf", silent, never)


def test_no_model_drafts_for_itself(shelf: ModelShelf) -> None:
    fit = shelf.draft_fit("x", "x")
    assert not fit.fits
    assert "itself" in fit.reason


def test_vocabularies_decide_whether_a_draft_fits(shelf: ModelShelf, tmp_path: Path) -> None:
    from tests.tiny_gguf import Tiny, write_llama

    for name, tiny_model in (("a", Tiny(seed=1)), ("b", Tiny(seed=2)), ("c", Tiny(merges=("Ġ Ġ", "Ġ t", "h e")))):
        write_llama(tmp_path / f"{name}.gguf", tiny_model)
        shelf.add(str(tmp_path / f"{name}.gguf"), silent, never)
    assert shelf.draft_fit("a", "b").reason == "fits: each token means the same in both"
    assert shelf.draft_fit("a", "c").reason.startswith(("fits by a map: ", "does not fit: "))


def test_what_was_chosen_by_hand_is_loaded_the_next_time_and_what_was_said_for_one_run_is_not(
    shelf: ModelShelf, tmp_path: Path
) -> None:
    mine, other = added(shelf, tmp_path), added(shelf, tmp_path, "Other.gguf")
    shelf.config_of(mine, other)
    assert ModelShelf(Settings()).config().draft is None, "it was not used yet"
    shelf.used()
    again = ModelShelf(Settings())
    assert again.ready()
    config = again.config()
    assert (config.target_name, config.draft_name, again.notes()) == (mine, other, ())
    said = ModelShelf(Settings(target=other))
    assert said.config().target_name == other
    said.used()
    assert again.config().target_name == mine
    shelf.config_of(mine, None)
    shelf.used()
    assert again.config().draft is None


def test_a_model_of_ones_own_is_taken_where_no_pair_is_installed(shelf: ModelShelf, tmp_path: Path) -> None:
    assert not shelf.ready()
    mine = added(shelf, tmp_path)
    assert shelf.ready()
    assert (shelf.config().target_name, shelf.config().draft) == (mine, None)


def test_models_used_last_that_are_gone_are_told(shelf: ModelShelf, tmp_path: Path) -> None:
    mine = added(shelf, tmp_path)
    shelf.config_of(mine, None)
    shelf.used()
    (tmp_path / "Mine.gguf").unlink()
    again = ModelShelf(Settings())
    assert not again.ready()
    with pytest.raises(NothingInstalled):
        again.config()
