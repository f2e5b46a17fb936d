import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.options import NAMES, Options, request
from app.settings import Settings, Window
from engine.config import Message, Speculation
from engine.errors import ConfigError
from tests.fakes_client import answer

some = st.builds(
    Options,
    temperature=st.none() | st.floats(0, 2),
    top_k=st.none() | st.integers(0, 100),
    seed=st.none() | st.integers(0, 9),
    spec=st.none() | st.sampled_from(["auto", "off", "3"]),
    thinking=st.none() | st.sampled_from(["auto", "on", "off"]),
)
QUESTION = Message(role="user", content="hi")


@given(some, some, some)
def test_the_upper_one_wins_where_it_says_something(top: Options, middle: Options, bottom: Options) -> None:
    merged = top.merge(middle.merge(bottom))
    assert merged == top.merge(middle).merge(bottom)
    assert top.merge(middle).over(bottom.over(Settings())) == merged.over(Settings())
    assert top.merge(Options()) == Options().merge(top) == top


@given(some)
def test_what_is_kept_is_json_that_gives_them_back(options: Options) -> None:
    assert Options.of_json(json.loads(json.dumps(options.said()))) == options
    assert None not in options.said().values()


@given(some)
def test_they_are_a_layer_of_settings(options: Options) -> None:
    assert Options.of_settings(options.over(Settings(theme="x"))) == options
    assert options.over(Settings(theme="x")).window == Window(theme="x")


def test_what_is_unknown_or_not_possible_says_nothing() -> None:
    kept = {
        "temperature": -1, "top_k": "many", "top_p": True, "seed": 7, "spec": 3, "thinking": "perhaps", "rule": [],
        "theme": "x", "later": {"a": 1}, "max_tokens": 1.5, "min_p": float("nan"),
    }  # fmt: skip
    assert Options.of_json(kept) == Options(seed=7, spec="3")


@pytest.mark.parametrize(("name", "value"), [("temperature", -1.0), ("spec", "65"), ("seed", 2**63), ("top_p", 0.0)])
def test_no_options_out_of_range_exist(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name.replace("_", "-")):
        Options(**{name: value})  # type: ignore[arg-type]


def test_all_of_them_reach_the_request_with_the_conversations_system_prompt() -> None:
    below = Settings(temperature=0.1, top_k=5, system="program", stop=("x",))
    options = Options(temperature=0.9, seed=3, max_tokens=5, thinking="off", spec="4", rule="coupled")
    made = request(below, options, (QUESTION,), "conversation")
    assert made.messages == (Message(role="system", content="conversation"), QUESTION)
    assert (made.sampling.temperature, made.sampling.top_k, made.sampling.seed) == (0.9, 5, 3)
    assert (made.max_tokens, made.stop, made.thinking) == (5, ("x",), False)
    assert made.speculation == Speculation(mode="fixed", length=4, rule="coupled")
    assert request(below, Options(), (QUESTION,), "").messages == (QUESTION,)


def test_every_option_is_a_setting() -> None:
    assert all(hasattr(Settings(), name) for name in NAMES)


@pytest.mark.parametrize(("said", "told"), [(None, None), ("auto", None), ("on", True), ("off", False)])
def test_thinking(said: str | None, told: bool | None) -> None:
    assert Settings(thinking=said).request(()).thinking is told  # type: ignore[arg-type]


def test_again_but_warmer() -> None:
    cold = answer("x")
    assert Options.warmer(cold.settings) == Options(temperature=0.3)
    conversation = Options(temperature=0.0, top_k=9)
    assert Options.warmer(cold.settings).merge(conversation) == Options(temperature=0.3, top_k=9)


def test_again_with_the_same_draws() -> None:
    assert Options.same_seed(answer("x")) == Options(seed=7, rule="rejection")


def test_the_windows_settings_have_their_defaults_in_one_place() -> None:
    assert Settings().window == Window()
    own = Settings(theme="t", bell="sound", idle_unload=0, colour_tokens=True)
    assert own.window == Window("t", "sound", 0, True)
