"""A conversation that outgrows its context: whole old turns leave, for good and never without need, and are told."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.config import Message, Request, Sampling, Speculation
from engine.engine import Engine
from engine.errors import PromptTooLong
from engine.forget import Horizon, Prompt, Size, cut, hole, room_for, split
from engine.pair import Pair
from engine.prompt import Chat
from engine.stats import Answer
from engine.templates import TemplateExhausted
from tests.chat_templates import CHATML, EVERY, NO_SYSTEM, THINKING
from tests.fakes import engine_of, fixed, fresh, last, request
from tests.fakes_vocab import FakeVocabulary

SECRET = "swordfish"
CONTROL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]", "[/INST]")


def user(text: str) -> Message:
    return Message(role="user", content=text)


def said(text: str, ids: Sequence[int] = ()) -> Message:
    return Message(role="assistant", content=text, ids=tuple(ids) or None)


def system(text: str) -> Message:
    return Message(role="system", content=text)


SIZES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 80)).map(lambda t: Size(t[0], t[0] + t[1])), min_size=1, max_size=30
)


def kept(turns: Sequence[Size], gone: int) -> int:
    """Tokens of the turns before the last that are still seen."""
    return sum(turn.whole for turn in turns[gone:-1])


@given(SIZES, st.integers(0, 60), st.integers(40, 300), st.integers(1, 70))
def test_turns_leave_only_when_they_must_and_then_half_of_the_place_is_free(
    turns: list[Size], head: int, n_ctx: int, room: int
) -> None:
    before = 0
    for count in range(1, len(turns) + 1):
        so_far = turns[:count]
        gone = cut(head, so_far, n_ctx, room)
        place = n_ctx - room - head - so_far[-1].asked
        assert before <= gone < count
        assert kept(so_far, gone) <= place or gone == count - 1
        if gone > before:
            assert kept(so_far, before) > place
            assert kept(so_far, gone) <= place // 2 or gone == count - 1
            assert kept(so_far, gone - 1) > place // 2
        before = gone


ROLES = st.lists(st.sampled_from("sua"), max_size=12).map("".join)


@given(ROLES)
def test_no_turn_is_split_and_nothing_is_lost(roles: str) -> None:
    names = {"s": "system", "u": "user", "a": "assistant"}
    messages = [Message(role=names[role], content=str(at)) for at, role in enumerate(roles)]  # type: ignore[arg-type]
    head, turns = split(messages)
    assert [*head, *(message for turn in turns for message in turn)] == messages
    assert all(message.role == "system" for message in head)
    assert len(turns) == max(1, roles.count("u"))
    for turn in turns:
        assert sum(message.role == "user" for message in turn) <= 1
    assert all(turn[0].role == "user" for turn in turns[1:])


IDS = st.lists(st.integers(0, 2), max_size=12)


@given(IDS, IDS, IDS, IDS)
def test_a_hole_is_the_stretch_whose_loss_makes_the_new_prompt(
    head: list[int], dropped: list[int], stays: list[int], new: list[int]
) -> None:
    before, after = head + dropped + stays + new, head + stays + new
    for held in (before, before[: len(head + dropped + stays)], [*head, *dropped, *stays, 7], [*head, *dropped], [7]):
        found = hole(before, after, held)
        if found is not None:
            start, end = found
            assert before[:start] + before[end:] == after
            assert held[: end + 1] == before[: end + 1]
    if dropped and before[: len(after)] != after:
        assert hole(before, after, before)


def test_there_is_no_hole_where_more_than_a_stretch_differs() -> None:
    assert hole([1, 2, 3, 4, 5], [1, 3, 4, 6], [1, 2, 3, 4, 5]) is None
    assert hole([1, 2, 3], [1, 2, 3], [1, 2, 3]) is None
    assert hole([1, 2], [1, 2, 3], [1, 2]) is None


TEXTS = st.text("ab \né", min_size=1, max_size=30).filter(str.strip)
GROWING = """{% for message in messages %}<|im_start|>{{ message.role }} {{ '#' * (2 * loop.index) }}
{{ message.content }}<|im_end|>{% endfor %}<|im_start|>"""
"""A turn takes more the later it stands, so its size alone says too little."""
TALKS = st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), min_size=1, max_size=14)


@pytest.mark.parametrize("template", [*EVERY.values(), GROWING], ids=[*EVERY, "growing"])
@settings(deadline=None, max_examples=8)
@given(talk=TALKS, n_ctx=st.integers(110, 260), told=st.booleans(), max_tokens=st.sampled_from([0, 5, 1000]))
def test_what_the_model_sees_is_the_system_prompt_and_the_last_turns_that_fit(
    template: str, talk: list[tuple[str, str, bool]], n_ctx: int, told: bool, max_tokens: int
) -> None:
    vocab = FakeVocabulary(control=CONTROL, eog=("</s>",), bos="<s>", chat_template=template)
    chat = Chat(vocab)
    horizon = Horizon(chat, n_ctx)
    room = room_for(max_tokens, n_ctx)
    head = [system("be kind")] if told else []
    rest: list[Message] = []
    gone = 0
    for question, answer, thought in talk:
        rest.append(user(question))
        if (alone := len(chat.ids([*head, rest[-1]]))) >= n_ctx:
            with pytest.raises(PromptTooLong, match=f"{alone} tokens and the context holds {n_ctx}"):
                horizon.prompt([*head, *rest], max_tokens)
            return
        prompt = horizon.prompt([*head, *rest], max_tokens)
        assert gone <= prompt.forgotten == 2 * prompt.turns
        gone = prompt.forgotten
        assert list(prompt.ids) == chat.ids([*head, *rest[gone:]])
        assert len(prompt.ids) + room <= n_ctx or gone == len(rest) - 1
        assert (gone > 0) == (len(rest) > 1 and len(chat.ids([*head, *rest])) + room > n_ctx)
        assert Horizon(chat, n_ctx).prompt([*head, *rest], max_tokens) == prompt
        text = f"<think>{answer}</think>{answer}" if thought else answer
        rest.append(said(text, vocab.tokenize(text)))


class Talker(ToyLM):
    """A toy over a chat's vocabulary: some random letters, then the end; it shouts where it sees the secret."""

    def __init__(self, n_ctx: int, blur: float = 0.0, template: str = CHATML, length: int = 12) -> None:
        super().__init__(4, n_ctx, blur=blur)
        self.vocab = FakeVocabulary(chat_template=template)  # type: ignore[assignment]
        self.answer_length = length

    def row(self, ids: Sequence[int]):  # type: ignore[no-untyped-def]
        vocab = self.vocab
        row = super().row(ids)
        opened = max(at for at, token in enumerate(ids) if token == vocab.control["<|im_start|>"])
        row[256:] = -50
        row[:97] = row[123:256] = -50
        if b"?" in bytes(token for token in ids[-20:] if token < 256) and SECRET.encode() in self.seen(ids):
            row[ord("!")] = 90
        if len(ids) - opened > len("\nassistant") + self.answer_length:
            row[vocab.control["<|im_end|>"]] = 99
        return row

    def seen(self, ids: Sequence[int]) -> bytes:
        return b"".join(map(self.vocab.piece, ids))


def ask(engine: Engine, messages: Sequence[Message], asked: Speculation, seed: int = 3) -> Answer:
    """One turn by the coupled rule, so that drafts change nothing."""
    sampling = Sampling(temperature=1, top_p=1, min_p=0, top_k=0, seed=seed)
    request = Request(messages=tuple(messages), sampling=sampling, speculation=asked, max_tokens=40)
    return last(engine.answer(request))


def talk_on(
    engine: Engine, asked: Speculation, turns: int, told: str = "be kind"
) -> Iterator[tuple[list[Message], Answer, list[int]]]:
    """A conversation whose first turn holds the secret: the messages before each answer, the answer, the prompt."""
    messages = [system(told), user(f"the word is {SECRET}")]
    for turn in range(turns):
        answer = ask(engine, messages, asked)
        yield list(messages), answer, engine.context.ids[: answer.cache.prompt_tokens]
        messages += [said(answer.text, answer.ids), user(f"what is it, turn {turn}")]


TALKING = [
    pytest.param(fixed(0), CHATML, id="off"),
    pytest.param(fixed(3), CHATML, id="fixed"),
    pytest.param(Speculation(), CHATML, id="auto"),
    pytest.param(fixed(2), NO_SYSTEM, id="no system"),
    pytest.param(fixed(2), THINKING, id="thinking"),
]


@pytest.mark.parametrize(("asked", "template"), TALKING)
@pytest.mark.parametrize("exact", ["normal", "strict"])
def test_a_talk_past_its_context_goes_on_as_fresh_and_tells_what_left(
    asked: Speculation, exact: str, template: str
) -> None:
    def make(blur: float = 0.0) -> Talker:
        return Talker(256, blur, template)

    engine = engine_of(make(), make(0.3), exact=exact)
    gone, cuts, read_again = 0, 0, 0
    for messages, answer, prompt in talk_on(engine, asked, 16):
        shown = engine.pair.target.vocab.show(prompt)  # type: ignore[attr-defined]
        assert "be kind" in shown
        assert messages[-1].content in shown
        assert (SECRET in shown) == (answer.forgotten == 0)
        assert len(prompt) + 40 <= 256
        assert engine._lookup._ids == engine.context.ids[: len(engine._lookup._ids)]
        sampling = Sampling(temperature=1, top_p=1, min_p=0, top_k=0, seed=3)
        plain = Request(messages=(), sampling=sampling, max_tokens=40)
        assert answer.ids == fresh(prompt, plain, make)
        told = [note for note in answer.notes if "no longer sees" in note]
        assert len(told) == (answer.forgotten > 0)
        assert answer.forgotten >= gone
        if answer.forgotten > gone:
            cuts += 1
            turns = "turn" if answer.forgotten == 2 else f"{answer.forgotten // 2} turns"
            assert told == [f"the context of 256 tokens is full: the model no longer sees the first {turns}"]
            read_again += answer.cache.target.read > 40
        elif gone or len(messages) > 2:
            assert answer.cache.target.read < 40
        assert answer.cache.target.reused + answer.cache.target.read == len(prompt)
        gone = answer.forgotten
    assert 3 <= cuts <= 6
    assert read_again == (cuts if exact == "strict" else 0)


def test_a_shift_makes_the_caches_hold_the_ids_that_stay() -> None:
    engine = engine_of(Talker(256), Talker(256, 0.3))
    for _ in talk_on(engine, fixed(3), 20):
        for cache in engine.context.caches:
            assert cache.model._cells == engine.context.ids[: cache.length]  # type: ignore[attr-defined]


def test_lookup_forgets_what_left_even_if_more_was_said_since_than_left() -> None:
    engine = engine_of(ToyLM(16))
    first = last(engine.answer_ids([1, 2, 3, 4, 5], request(max_tokens=20)))
    kept = [1, 2, 4, 5, *first.ids, 6]
    engine._horizon.prompt = lambda *_: Prompt(kept, 1, 1, (2, 3))  # type: ignore[method-assign]
    answer = last(engine.answer(request(None, fixed(3))))
    assert answer.cache.target.read == 2
    assert answer.ids == fresh(kept, request(), lambda: ToyLM(16))
    assert engine._lookup._ids == engine.context.ids[: len(engine._lookup._ids)]


def test_a_talk_too_long_for_its_template_at_once_goes_on() -> None:
    template = "{% if messages|length > 9 %}{{ 'a' * 10**9 }}{% endif %}" + CHATML
    vocab = FakeVocabulary(chat_template=template)
    messages = [user("hi"), *[said("yes"), user("more")] * 8]
    prompt = Horizon(Chat(vocab), 300).prompt(messages, 40)
    assert len(prompt.ids) + 40 <= 300
    assert 0 < prompt.forgotten < len(messages) - 1


def test_a_turn_too_long_for_its_template_leaves() -> None:
    """It was refused when it was asked; the chat is not lost with it."""
    long = "{% for message in messages %}{% if message.content|length > 99 %}{{ 'a' * 10**9 }}{% endif %}{% endfor %}"
    horizon = Horizon(Chat(FakeVocabulary(chat_template=long + CHATML)), 300)
    messages = [system("be kind"), user("hi"), said("yes"), user("x" * 100)]
    with pytest.raises(TemplateExhausted):
        horizon.prompt(messages, 40)
    assert horizon.prompt([*messages, user("more")], 40).forgotten == 3


@pytest.mark.parametrize("kind", ["sliding", "recurrent"])
def test_caches_that_cannot_shift_read_again_and_are_right(kind: str) -> None:
    def make() -> Talker:
        model = Talker(256)
        model.kind = kind  # type: ignore[assignment]
        model.row = lambda ids: ToyLM.row(model, ids)  # type: ignore[method-assign]
        return model

    sampling = Sampling(temperature=1, top_p=1, min_p=0, top_k=0, seed=3)
    cuts = set()
    engine = engine_of(make())
    for _, answer, prompt in talk_on(engine, fixed(0), 9):
        cuts.add(answer.forgotten)
        assert answer.ids == fresh(prompt, Request(messages=(), sampling=sampling, max_tokens=40), make)
    assert len(cuts) > 1


def test_an_edit_a_regeneration_and_another_chat_after_turns_left_are_fresh() -> None:
    engine = engine_of(Talker(256), Talker(256, 0.3))
    *_, (messages, _, _) = talk_on(engine, fixed(3), 16)
    other = [system("be kind"), user("hello"), said("yes"), user("more")]
    edited = [*messages[:-5], user("edited"), said("ok"), user("and then?")]
    shorter = messages[:-2]
    for talk in (messages, edited, other, messages, shorter, messages, other[:2], edited):
        answer = ask(engine, talk, fixed(3))
        prompt = engine.context.ids[: answer.cache.prompt_tokens]
        alone = engine_of(Talker(256))
        assert answer.ids == ask(alone, talk, fixed(0)).ids
        assert alone.context.ids[: len(prompt)] == prompt


def test_the_last_question_alone_may_not_fit() -> None:
    engine = engine_of(Talker(256))
    long = [user("hi"), said("yes"), user("x" * 300)]
    with pytest.raises(PromptTooLong, match=r"the prompt has 3\d\d tokens and the context holds 256") as caught:
        ask(engine, long, fixed(0))
    assert caught.value.n_ctx == 256
    answer = ask(engine, [user("hi"), said("yes"), user("x" * 180)], fixed(0))
    assert (answer.forgotten, answer.finish_reason) == (2, "stop")


def test_the_same_talk_is_cut_alike_in_a_new_engine() -> None:
    engine = engine_of(Talker(256))
    for messages, answer, prompt in talk_on(engine, fixed(0), 14):
        alone = engine_of(Talker(256))
        assert ask(alone, messages, fixed(0)).forgotten == answer.forgotten
        assert alone.context.ids[: len(prompt)] == prompt


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Pair]]:
    from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
    from tests.tiny_gguf import write_llama

    path: Path = write_llama(tmp_path_factory.mktemp("forget") / "tiny.gguf")
    made: list[Pair] = []

    def pair(exact: str = "normal") -> Pair:
        model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1))
        model.try_shift()
        made.append(Pair(model, exact=exact))  # type: ignore[arg-type]
        return made[-1]

    yield pair  # type: ignore[misc]
    for one in made:
        one.close()


@pytest.mark.parametrize("exact", ["normal", "strict"])
def test_llama_cpp_shifts_or_in_strict_exactness_reads_again(tiny: Callable[[str], Pair], exact: str) -> None:
    engine = Engine(tiny(exact))
    seen = []
    greedy = Sampling(temperature=0)
    for messages, answer, prompt in talk_on_greedily(engine, 12):
        seen.append((answer.forgotten, answer.cache.target.reused, len(prompt)))
        if exact == "strict" and answer.forgotten:
            alone = Engine(tiny(exact))
            assert answer.ids == last(alone.answer(_greedy(messages, greedy))).ids
            alone.close()
    cut_at = [at for at, (a, b) in enumerate(pairwise(seen), 1) if b[0] > a[0]]
    assert len(cut_at) >= 2
    for at in cut_at:
        _, reused, size = seen[at]
        assert (reused > size // 2) == (exact == "normal")


def _greedy(messages: Sequence[Message], sampling: Sampling) -> Request:
    return Request(messages=tuple(messages), sampling=sampling, speculation=fixed(0), max_tokens=20)


def talk_on_greedily(engine: Engine, turns: int) -> Iterator[tuple[list[Message], Answer, list[int]]]:
    messages = [system("be kind"), user(f"the word is {SECRET}")]
    for turn in range(turns):
        answer = last(engine.answer(_greedy(messages, Sampling(temperature=0))))
        yield list(messages), answer, engine.context.ids[: answer.cache.prompt_tokens]
        messages += [said(answer.text, answer.ids), user(f"turn {turn}")]


@pytest.mark.parametrize("before", [True, False], ids=["after another conversation", "in a new process"])
def test_a_conversation_taken_up_again_is_cut_as_if_it_had_never_been_left(tmp_path: Path, before: bool) -> None:
    """Turns that left before it was kept are known from its messages, so the next ones leave the caches in place."""
    made = list(talk_on(engine_of(Talker(256)), fixed(0), 14))
    at = next(at for at, ((_, a, _), (_, b, _)) in enumerate(pairwise(made), 1) if b.forgotten > a.forgotten > 0)
    old = engine_of(Talker(256))
    for messages, _, _ in made[:at]:
        ask(old, messages, fixed(0))
    old.keep(tmp_path)
    new = engine_of(Talker(256))
    if before:
        for _ in talk_on(new, fixed(0), 16, told="be long"):
            pass
    assert new.resume(tmp_path).target == old.context.target.length
    again, meant = ask(new, made[at][0], fixed(0)), made[at][1]
    assert (again.ids, again.forgotten) == (meant.ids, meant.forgotten)
    assert again.cache == meant.cache
    assert again.cache.target.read < 40
