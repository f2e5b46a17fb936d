"""Coloured answers: every token in the look of its origin, its chances at mouse and keys, live and from the store."""

import pytest
from textual.pilot import Pilot

from app.themes import PALETTES
from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.coloured_answer import ColouredAnswer, about, counted, legend, quoted
from app.widgets.passages import Passages
from app.widgets.provenance import LETTERS, Provenance
from engine.events import Refused, TokenTrace
from tests.app.fakes_shelf import until
from tests.app.fakes_trace import SENTENCE, TEXT, MessageApp, texts, token
from tests.fakes_client import answer

MARKUP = ["[/]", "[bold", "[0] x", "[b + ... [/#888888]", "[@click=app.quit]press[/]", "\\[x] [$primary]", "[link=x]"]


def stored(trace: tuple[TokenTrace, ...] = SENTENCE) -> Entry:
    text = texts(trace)
    return Entry("assistant", text, answer(text, ids=list(range(len(trace)))), id=7, trace=trace)


async def coloured(pilot: Pilot[None], message: AnswerMessage) -> Provenance:
    message.coloured = True
    await until(pilot, lambda: message.query(Provenance))
    await pilot.pause()
    return message.query_one(Provenance)


def segments(provenance: Provenance) -> list[tuple[str, str]]:
    """What is drawn, each with the names of its letter style."""
    found = []
    for y in range(provenance.size.height):
        for segment in provenance.render_line(y):
            style = segment.style
            names = [
                name for name in ("bold", "italic", "underline", "underline2", "reverse") if getattr(style, name, None)
            ]
            found.append((segment.text, " ".join(names)))
    return [(text, names) for text, names in found if text.strip()]


async def test_each_token_has_the_look_of_its_origin() -> None:
    message = AnswerMessage(stored())
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        provenance = await coloured(pilot, message)
        names = dict(segments(provenance))
        assert names["The"] == ""
        assert names[" dog"] == "underline2"
        assert " quick brown" in names or names[" quick"] == "bold"
        assert names[" mat"] == "italic"
        drawn = "".join(text for text, _ in segments(provenance))
        assert drawn.replace("↵", "").replace(" ", "") == TEXT.replace("\n", "").replace(" ", "")


def test_no_two_origins_have_the_same_letters_and_no_theme_the_same_colours() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)
    for palette in PALETTES:
        assert len(set(palette.provenance.values())) == 4


async def test_without_colours_the_letters_tell_the_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    message = AnswerMessage(stored())
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        provenance = await coloured(pilot, message)
        names = dict(segments(provenance))
        assert names[" dog"] == "reverse"
        assert names[" mat"] == "italic"


async def test_the_mouse_over_a_token_shows_its_chances_and_what_was_refused() -> None:
    message = AnswerMessage(stored())
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        provenance = await coloured(pilot, message)
        place = provenance.woven(provenance.size.width).place(3)
        assert place is not None
        await pilot.hover(provenance, offset=place)
        await pilot.pause()
        card = message.query_one(".card")
        said = str(card.render())
        assert card.display
        assert "‘ dog’" in said
        assert "target 82.4 %" in said
        assert "in place of ‘ fox’" in said
        assert "target 11.8 %   draft 70.0 %" in said
        assert card.region.y == provenance.region.y + place[1] + 1
        assert app.screen.region.contains_region(card.region)
        await pilot.hover("Foot")
        await pilot.pause()
        assert not card.display


async def test_keys_go_from_token_to_token_and_from_refusal_to_refusal() -> None:
    message = AnswerMessage(stored())
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        provenance = await coloured(pilot, message)
        message.chosen = True
        message.focus()
        for key, shown in [
            ("right", 0),
            ("right", 1),
            ("left", 0),
            ("n", 3),
            ("n", 11),
            ("n", 11),
            ("p", 3),
            ("left", 2),
        ]:
            await pilot.press(key)
            assert provenance.shown == shown
        message.coloured = False
        await until(pilot, lambda: not message.query(Provenance))
        await pilot.press("right")
        assert message.query_one(Passages).display


async def test_the_token_that_is_shown_is_scrolled_into_view() -> None:
    trace = (*(token(f"line {number}\n") for number in range(60)), token("x", refused="y"))
    message = AnswerMessage(stored(trace))
    app = MessageApp(message)
    async with app.run_test(size=(40, 12)) as pilot:
        provenance = await coloured(pilot, message)
        provenance.move(1, refused=True)
        await pilot.pause()
        await pilot.pause()
        view = provenance.parent.parent.parent.region  # type: ignore[union-attr]
        place = provenance.woven(provenance.size.width).place(60)
        assert place is not None
        assert view.y <= provenance.region.y + place[1] < view.bottom
        card = message.query_one(".card")
        assert app.screen.region.contains_region(card.region)


async def test_a_token_streams_into_colours_and_back_into_prose() -> None:
    message = AnswerMessage(coloured=True)
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        for one in SENTENCE[:6]:
            await message.write(one.text, [one])
        await pilot.pause()
        assert message.query(Provenance)
        assert str(message.query_one(".legend").render()) == ("target 3 · lookup 1 · draft model 2 · corrected 1")
        message.coloured = False
        await until(pilot, lambda: not message.query(Provenance))
        await until(pilot, lambda: message.query_one(Passages).source == texts(SENTENCE[:6]))
        for one in SENTENCE[6:]:
            await message.write(one.text, [one])
        await until(pilot, lambda: message.query_one(Passages).source == TEXT)
        message.coloured = True
        await until(pilot, lambda: message.query(Provenance))
        await message.finish(Entry.of_answer(answer(TEXT)))
        await pilot.pause()
        drawn = "".join(text for text, _ in segments(message.query_one(Provenance)))
        assert "slept" in drawn
        message.coloured = False
        await until(pilot, lambda: not message.query(ColouredAnswer))
        assert message.query_one(Passages).source == TEXT


async def test_coloured_text_grows_with_its_tokens() -> None:
    message = AnswerMessage(coloured=True)
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        for one, height in zip([*SENTENCE[:9], token(" more\nand more")], [*[1] * 8, 2, 4], strict=True):
            await message.write(one.text, [one])
            await pilot.pause()
            assert message.query_one(Provenance).size.height == height
        drawn = "".join(text for text, _ in segments(message.query_one(Provenance)))
        assert "".join(drawn.split()) == "Thequickbrowndogsatonthemat.moreandmore"


async def test_tokens_of_a_stored_answer_are_asked_for_and_shown() -> None:
    bare = Entry("assistant", TEXT, answer(TEXT), id=7)
    message = AnswerMessage(bare)
    app = MessageApp(message)
    async with app.run_test(size=(80, 24)) as pilot:
        message.coloured = True
        await until(pilot, lambda: app.wanted)
        (wanted,) = app.wanted
        assert isinstance(wanted, AnswerMessage.TraceWanted)
        assert wanted.entry_id == 7
        await message.show_trace(())
        assert not message.query(Provenance)
        await message.show_trace(SENTENCE)
        assert message.query(Provenance)


async def test_markup_and_control_characters_in_tokens_are_text() -> None:
    trace = tuple(token(f"{text} ", refused=text) for text in [*MARKUP, "\x1b[2J", "a\rb"])
    message = AnswerMessage(stored(trace), coloured=True)
    app = MessageApp(message)
    async with app.run_test(size=(100, 24)) as pilot:
        await until(pilot, lambda: message.query(Provenance))
        await pilot.pause()
        provenance = message.query_one(Provenance)
        drawn = "".join(text for text, _ in segments(provenance))
        for number, text in enumerate(MARKUP):
            assert text.replace(" ", "") in drawn.replace(" ", "")
            provenance.shown = number
            await pilot.pause()
            assert str(message.query_one(".card").render()).count(f"‘{text[:20]}") == 2
        assert "␛[2J" in drawn
        for x in range(0, 60, 7):
            await pilot.click(provenance, offset=(x, 0))
        assert app.is_running


def test_origins_on_the_card_are_those_of_the_script() -> None:
    said = [about(one).plain.split("\n") for one in SENTENCE]
    assert said[0] == ["‘The’  target", "target 82.4 %"]
    assert said[1] == ["‘ quick’  draft model", "target 82.4 %   draft 64.2 %"]
    assert said[5][0] == "‘ on’  lookup"
    assert said[7][0] == "‘ mat’  early exit"
    assert said[8][0] == "‘.↵↵’  target"
    counts = counted(SENTENCE)
    assert legend(counts, colours=True).plain == ("target 6 · lookup 3 · draft model 2 · early exit 1 · corrected 2")
    assert sum(counts[origin] for origin in LETTERS) == len(SENTENCE)


def test_a_copied_draft_that_was_refused_has_no_chance_of_its_own() -> None:
    denied = Refused(text="b", target=0.0004, draft=None)
    said = about(TokenTrace(origin="target", text="a", target=1.0, refused=denied)).plain.split("\n")
    assert said[1:] == ["target 100 %", "in place of ‘b’", "target < 0.1 %   copied"]


@pytest.mark.parametrize("text", ["x" * 99, "汉" * 99, "a\nb\tc"])
def test_a_token_is_quoted_in_one_short_line(text: str) -> None:
    assert quoted(text).cell_length <= 26
    assert "\n" not in quoted(text).plain
