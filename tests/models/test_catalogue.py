"""The catalogue: what is packaged is whole, ids are safe, and a wrong id gets a hint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import catalogue
from models.errors import UnknownModel
from tests.models.wheelhouse import FACTS, house


def test_the_packaged_catalogue() -> None:
    packaged = catalogue.load()
    assert list(packaged.pairs) == ["coder", "tiny"]
    assert list(packaged.models) == ["qwen2.5-coder-1.5b-q4_k_m", "qwen2.5-coder-0.5b-q4_k_m", "smollm2-135m-q4_1"]
    assert [entry.bytes for entry in packaged.models.values()] == [1117320768, 491400064, 98362432]
    assert [len(entry.source.parts) for entry in packaged.models.values()] == [22, 6, 1]
    for entry in packaged.models.values():
        assert 0.9 < entry.source.bytes / entry.bytes < 1
        hashes = [part.sha256 for part in entry.source.parts] + [entry.sha256]
        assert len(set(hashes)) == len(hashes)
        assert all(len(digest) == 64 for digest in hashes)


def test_entries_of_a_pair_and_of_a_model() -> None:
    packaged = catalogue.load()
    assert [entry.id for entry in packaged.entries("coder")] == list(packaged.models)[:2]
    assert [entry.id for entry in packaged.entries("tiny")] == ["smollm2-135m-q4_1"]
    assert [entry.id for entry in packaged.entries("smollm2-135m-q4_1")] == ["smollm2-135m-q4_1"]


@pytest.mark.parametrize(("wrong", "near"), [("Coder", "coder"), ("smollm2", "smollm2-135m-q4_1"), ("???", "list")])
def test_an_unknown_id_gets_a_hint(wrong: str, near: str) -> None:
    with pytest.raises(UnknownModel, match=near):
        catalogue.load().entries(wrong)


@pytest.mark.parametrize("id", ["../x", "/etc/x", "C:\\x", "a\0b", "con", "nul.gguf", "a/b", "", ".hidden", "..", "A"])
def test_an_id_that_is_no_safe_file_name_is_refused(tmp_path_factory: pytest.TempPathFactory, id: str) -> None:
    entry = house(tmp_path_factory.mktemp("c"), id=id).entry
    with pytest.raises(ValueError, match="cannot be an id"):
        catalogue.Catalogue({id: entry}, {})


def test_a_pair_of_unknown_models_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the catalogue"):
        catalogue.Catalogue({}, {"p": catalogue.Pair(id="p", title="", target="t")})


def test_a_field_that_is_not_known_is_refused() -> None:
    text = b'[models]\n[pairs.p]\ntitle = "P"\ntarget = "t"\ncolour = "red"\n'
    with pytest.raises(ValueError, match="colour"):
        catalogue.parse(text)


@given(st.text(max_size=300))
def test_any_name_gives_a_safe_id(name: str) -> None:
    assert catalogue.valid_id(catalogue.id_for(name))


def test_facts_of_the_catalogue_have_the_shape_of_facts() -> None:
    assert {type(entry.facts) for entry in catalogue.load().models.values()} == {type(FACTS)}
