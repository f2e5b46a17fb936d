"""Keys: every binding has what help and palette show, and a user's file is taken as far as it is right."""

from pathlib import Path

import pytest
from textual.app import App
from textual.binding import Binding

from app import keys
from app.keys import Key

KNOWN = (
    Key("app.quit", ("ctrl+q",), "Quit", "Leave", "ChatApp"),
    Key("chat.new", ("ctrl+n",), "New chat", "Begin", "ChatScreen"),
    Key("chat.stop", ("escape",), "Stop", "End", "ChatScreen"),
    Key("prompt.break_line", ("shift+enter", "ctrl+j"), "New line", "Break", "Prompt"),
    Key("prompt.back", ("escape",), "Back", "Close", "Prompt"),
    Key("first.cancel", ("escape",), "Cancel", "Stop", "FirstRunScreen"),
)


def test_every_binding_has_an_id_of_its_own_a_name_and_a_tooltip() -> None:
    declared = [binding for _, binding in keys._bindings()]
    assert len(declared) > 10
    for binding in declared:
        assert binding.id, binding
        assert binding.description, binding
        assert binding.tooltip, binding
    ids = [binding.id for binding in declared]
    assert len(ids) == len(set(ids))


def test_the_list_is_complete_and_grouped() -> None:
    found = keys.declared()
    assert {"app.quit", "chat.stop", "prompt.break_line", "first.choose", "help.close"} <= {key.id for key in found}
    groups = [key.group for key in found]
    assert groups[0] == "Everywhere"
    assert len({*groups}) == sum(one != other for one, other in zip(groups, [None, *groups], strict=False))


def test_no_two_keys_of_one_class_are_one() -> None:
    taken = [(key.place, one) for key in keys.declared() for one in key.keys]
    assert [pair for pair in set(taken) if taken.count(pair) > 1] == []


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"chat.nwe": "ctrl+t"}, "chat.nwe: there is no such key: perhaps 'chat.new'?"),
        ({"zzz": "ctrl+t"}, "zzz: there is no such key: the help screen names them (F1)"),
        ({"chat.new": "ctrl-t"}, "chat.new: 'ctrl-t' is no key"),
        ({"chat.new": "ctlr+t"}, "chat.new: 'ctlr+t' is no key"),
        ({"chat.new": "ctrl+"}, "chat.new: 'ctrl+' is no key"),
        ({"chat.new": "f2,hop"}, "chat.new: 'hop' is no key"),
        ({"chat.new": 5}, "chat.new: must be a key in quotes"),
        ({"chat.new": " , "}, "chat.new: must be a key in quotes"),
        ({"chat.new": "escape"}, "chat.new: 'escape' is the key of chat.stop already"),
        ({"chat.new": "ctrl+q"}, "chat.new: 'ctrl+q' is the key of app.quit already"),
        ({"chat.new": "ctrl+j"}, "chat.new: 'ctrl+j' is the key of prompt.break_line already"),
    ],
)
def test_what_is_wrong_is_told_and_left_out(said: dict[str, object], fault: str) -> None:
    keymap, faults = keys.chosen({**said, "app.quit": "ctrl+w"} if "ctrl+q" not in said.values() else said, KNOWN)
    assert len(faults) == 1
    assert faults[0].startswith(fault)
    assert keymap == ({} if "ctrl+q" in said.values() else {"app.quit": "ctrl+w"})


@pytest.mark.parametrize("key", ["ctrl+t", "f12", "alt+up", "shift+f3", "?", "question_mark", "super+c", "pageup", "a"])
def test_what_is_a_key_is_taken(key: str) -> None:
    assert keys.chosen({"chat.new": key}, KNOWN) == ({"chat.new": key}, [])


def test_of_two_settings_for_one_key_the_first_counts() -> None:
    keymap, faults = keys.chosen({"chat.new": "f6", "chat.stop": "f6"}, KNOWN)
    assert keymap == {"chat.new": "f6"}
    assert faults == ["chat.stop: 'f6' is the key of chat.new already"]


def test_keys_may_change_places_and_screens_may_share_them() -> None:
    swap = {"chat.new": "ctrl+q", "app.quit": "ctrl+n"}
    assert keys.chosen(swap, KNOWN) == (swap, [])
    assert keys.chosen({"first.cancel": "ctrl+n"}, KNOWN) == ({"first.cancel": "ctrl+n"}, [])


def test_what_is_shared_by_default_may_go_on_being_shared() -> None:
    assert keys.chosen({"chat.stop": "escape,f12"}, KNOWN) == ({"chat.stop": "escape,f12"}, [])


def test_a_file_may_name_ids_in_quotes_or_in_tables(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('"chat.stop" = "escape, f21"\nchat.new = "ctrl+t"\n[prompt]\nbreak_line = "f22"\n')
    keymap, faults = keys.read(path)
    assert faults == []
    assert keymap == {"chat.stop": "escape,f21", "chat.new": "ctrl+t", "prompt.break_line": "f22"}


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert keys.read(tmp_path / "keys.toml") == ({}, [])


@pytest.mark.parametrize("data", [b"chat.new = ", b"\xff", b'"[/]" = "a"', b'"a\\nb" = "a"'])
def test_a_fault_names_the_file_on_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(data)
    keymap, faults = keys.read(path)
    assert keymap == {}
    assert len(faults) == 1
    assert str(path) in faults[0]
    assert faults[0].isprintable()


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "keys.toml").mkdir()
    assert len(keys.read(tmp_path / "keys.toml")[1]) == 1


def test_changed_keys_are_what_help_and_palette_show() -> None:
    changed = keys.changed(KNOWN, {"chat.new": "f6,ctrl+t"})
    assert next(key for key in changed if key.id == "chat.new").keys == ("f6", "ctrl+t")
    assert [key.id for key in changed] == [key.id for key in KNOWN]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("ctrl+n", "Ctrl+N"),
        ("shift+enter", "Shift+Enter"),
        ("f2", "F2"),
        ("pageup", "PgUp"),
        ("question_mark", "?"),
        ("slash", "/"),
        ("up", "Up"),
        ("comma", ","),
        ("a", "A"),
    ],
)
def test_keys_are_shown_as_people_write_them(key: str, said: str) -> None:
    assert keys.shown(key) == said


async def test_a_keymap_does_what_it_says() -> None:
    class Host(App[None]):
        BINDINGS = [Binding("ctrl+n", "note", "New chat", id="chat.new", tooltip="Begin")]
        noted = 0

        def action_note(self) -> None:
            self.noted += 1

    app = Host()
    app.set_keymap(keys.chosen({"chat.new": "f6"}, KNOWN)[0])
    async with app.run_test() as pilot:
        await pilot.press("ctrl+n")
        assert app.noted == 0
        await pilot.press("f6")
        assert app.noted == 1
