import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import layers
from app.config_file import changed, literal, save
from app.errors import SettingsError
from app.settings import Settings

FILE = """\
# mine
temperature = 0.5   # warm "enough" # yes

stop = [  # two
  "a # b",
  "c",
]  # stops
top-k = 3
system = '''
be # brief
'''
"""


def test_all_that_is_not_changed_stays_letter_by_letter() -> None:
    after = changed(FILE, {"top_k": 9, "seed": 1})
    assert after == FILE.replace("top-k = 3", "top-k = 9") + "seed = 1\n"


def test_comments_stay_beside_what_is_changed() -> None:
    after = changed(FILE, {"temperature": 0.7, "stop": ("x",), "system": "a\nb"})
    assert 'temperature = 0.7   # warm "enough" # yes\n' in after
    assert 'stop = ["x"]  # stops\n' in after
    assert 'system = "a\\nb"\n' in after
    assert after.startswith("# mine\n")


def test_none_takes_a_setting_out() -> None:
    assert changed(FILE, {"stop": None, "system": None, "seed": None}) == (
        '# mine\ntemperature = 0.5   # warm "enough" # yes\n\ntop-k = 3\n'
    )


def test_new_settings_stand_before_tables_and_after_a_line_without_an_end() -> None:
    assert changed("a = 1\n[t]\nseed = 2\n", {"seed": 3}) == "a = 1\nseed = 3\n[t]\nseed = 2\n"
    assert changed("a = 1", {"seed": 3}) == "a = 1\nseed = 3\n"
    assert changed("", {"seed": 3, "theme": None}) == "seed = 3\n"
    assert changed("a = 1\r\nseed = 2\r\n", {"seed": 3}) == "a = 1\r\nseed = 3\n"


values = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.lists(st.text())


@given(
    st.dictionaries(st.sampled_from(["a", "b_c", "d"]), st.none() | values),
    st.dictionaries(st.sampled_from("abd"), values),
)
def test_the_file_reads_as_it_was_with_the_changes(changes: dict[str, object], before: dict[str, object]) -> None:
    text = "".join(f"{key} = {literal(value)} # {key}\n" for key, value in before.items())
    after = tomllib.loads(changed(text, changes))
    kept = {key: value for key, value in before.items() if key not in changes}
    assert after == {**kept, **{key: value for key, value in changes.items() if value is not None}}


def test_what_is_saved_is_read_and_private(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    save(file, {"temperature": 0.2, "history": False, "stop": ("a",), "theme": "x"})
    assert layers.load(Settings(), file, {}) == Settings(temperature=0.2, history=False, stop=("a",), theme="x")
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX")
def test_a_link_stays_a_link_and_a_mode_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    real.write_text("seed = 1\n")
    real.chmod(0o644)
    link.symlink_to(real)
    save(link, {"seed": 2})
    assert link.is_symlink()
    assert real.read_text() == "seed = 2\n"
    assert real.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", ["seed = ", "seed = 1\nseed = 2\n", "[seed]\n", "x = '''", "\xff"])
def test_a_broken_file_is_left_alone_and_said_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError, match="nothing was saved") as caught:
        save(file, {"theme": "y", "seed": 2})
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == text.encode("latin-1")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs rights that can be taken")
def test_a_folder_without_rights_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(SettingsError, match="cannot be used"):
        save(folder / "config.toml", {"seed": 2})


def test_a_folder_in_the_place_of_the_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot be written"):
        save(tmp_path / "config.toml", {"seed": 2})
