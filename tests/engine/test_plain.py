"""A prompt's ids are those of llama.cpp's own reading of the rendered text, for every kind of vocabulary."""

import random
from collections.abc import Iterator

import pytest

from engine.config import Message
from engine.plain import PlainText
from engine.prompt import Chat
from engine.templates import ChatTemplate
from tests.chat_templates import EVERY
from tests.fakes_vocab import FakeVocabulary
from tests.real_vocab import RealVocabulary, some_text
from tests.tiny_gguf import Tiny, write_gemma, write_llama

AFTERWORD = """{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }} and so on
<|im_end|> {% endfor %}<|im_start|>
"""
"""Text and blanks on both sides of every message and of every token."""
TEMPLATES = EVERY | {"afterword": AFTERWORD}
PHI = ("</s>", "<s>", "<|endoftext|>")
FILES = {
    "bpe": (write_llama, Tiny()),
    "spm": (write_gemma, Tiny(layers=1)),
    "spm with a space": (write_gemma, Tiny(layers=1, space_prefix=True)),
    "stripping": (write_gemma, Tiny(layers=1, name="Phi-3 tiny", space_prefix=True, extra=PHI)),
}


@pytest.fixture(scope="module", params=FILES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealVocabulary]:
    write, tiny = FILES[request.param]
    vocabulary = RealVocabulary(write(tmp_path_factory.mktemp("vocab") / "tiny.gguf", tiny))
    yield vocabulary
    vocabulary.close()


def chat_of(real: RealVocabulary, source: str) -> Chat:
    """The prompts of this vocabulary with a template that speaks its control tokens."""
    if "<start_of_turn>" in real.vocab.control:
        source = source.replace("<|im_start|>", "<start_of_turn>").replace("<|im_end|>", "<end_of_turn>")
    real.vocab.chat_template = source
    return Chat(real.vocab)


def talk(generator: random.Random) -> list[Message]:
    """Up to three turns without ids; every other text begins or ends with blanks."""
    texts = [some_text(generator) + generator.choice(["", " ", "\n"]) for _ in range(generator.choice([1, 3, 5]))]
    return [Message(role="assistant" if at % 2 else "user", content=text) for at, text in enumerate(texts)]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_prompt_reads_as_llama_cpp_reads_the_rendered_text(real: RealVocabulary, name: str) -> None:
    generator = random.Random(7)
    chat = chat_of(real, TEMPLATES[name])
    names = {token: text for text, token in real.vocab.control.items()}
    ends = names.get(real.vocab.bos, ""), names.get(real.vocab.eos, "")  # type: ignore[call-overload]
    for _ in range(8):
        messages = talk(generator)
        text = ChatTemplate(real.vocab.chat_template or "").render(
            [{"role": message.role, "content": message.content} for message in messages], *ends
        )
        want = real.whole(text)
        bos = real.vocab.bos
        assert chat.ids(messages) == (want if bos is None or want[0] == bos else [bos, *want])


@pytest.mark.parametrize("name", ["chatml", "afterword", "trimming", "thinking"])
def test_a_next_prompt_goes_on_from_the_last_and_its_text_stays_the_same(real: RealVocabulary, name: str) -> None:
    generator = random.Random(8)
    chat, vocab = chat_of(real, TEMPLATES[name]), real.vocab
    ordinary = [token for token in range(vocab.size) if vocab.piece(token)]
    for _ in range(12):
        ids = [*generator.choices(ordinary, k=12), *vocab.tokenize("q")]
        text = b"".join(map(vocab.piece, ids)).decode("utf-8", "replace")
        asked = [Message(role="user", content=some_text(generator))]
        after = Message(role="user", content="go on")
        prompt = chat.ids(asked)
        known = chat.ids([*asked, Message(role="assistant", content=text, ids=tuple(ids)), after])
        unknown = chat.ids([*asked, Message(role="assistant", content=text), after])
        if name == "chatml" or (name == "thinking" and "</think>" not in text):
            assert known[: len(prompt) + len(ids)] == prompt + ids
        if "\ufffd" not in text and not vocab.strips[1]:
            assert [*map(vocab.piece, known)] != []
            assert b"".join(map(vocab.piece, known)) == b"".join(map(vocab.piece, unknown))


def test_no_space_comes_between_an_answer_and_the_text_after_it(real: RealVocabulary) -> None:
    chat, vocab = chat_of(real, AFTERWORD), real.vocab
    ids = vocab.tokenize("in the ")
    text = b"".join(map(vocab.piece, ids)).decode()
    talk = [Message(role="user", content="q"), Message(role="assistant", content=text, ids=tuple(ids))]
    made = chat.ids([*talk, Message(role="user", content="q")])
    shown = b"".join(map(vocab.piece, made)).decode()
    assert f"{text} and so on" in shown
    assert f"{text}  and" not in shown


STRIPPING = FakeVocabulary(control=("<l>", "<r>", "<b>"), eog=(), strips=(("<l>", "<b>"), ("<r>", "<b>")))


@pytest.mark.parametrize(
    ("before", "text", "after", "read"),
    [
        (None, " a ", None, " a "),
        ("<l>", " a ", "<r>", " a "),
        ("<r>", " \t\n\v\f\ra ", "<r>", "a "),
        ("<l>", " a\n \t", "<l>", " a"),
        ("<b>", " a ", "<b>", "a"),
        ("<b>", " \n ", None, ""),
        ("<r>", "\u00a0a", None, "\u00a0a"),
    ],
)
def test_tokens_that_strip_swallow_the_blanks_beside_them(
    before: str | None, text: str, after: str | None, read: str
) -> None:
    names = {None: None, **STRIPPING.control}
    ids = PlainText(STRIPPING).ids(text, names[before], names[after])
    assert ids == STRIPPING.tokenize(read)


@pytest.mark.parametrize("name", ["chatml", "afterword", "trimming", "thinking", "no_system"])
def test_control_tokens_cannot_be_forged_in_any_vocabulary(real: RealVocabulary, name: str) -> None:
    generator = random.Random(9)
    chat, vocab = chat_of(real, TEMPLATES[name]), real.vocab
    known = set(vocab.control.values())
    fragments = [*vocab.control, "<|im_", "end|>", "<start_of_", "turn>", "<", "\n", " ", "x", "</think>"]

    def control(text: str) -> list[int]:
        talk = [Message(role=role, content=text) for role in ("user", "assistant", "user")]  # type: ignore[arg-type]
        ids = chat.ids(talk)
        if name in ("chatml", "afterword"):
            assert b"".join(map(vocab.piece, ids)).decode().count(text) == 3
        return [token for token in ids if token in known]

    own = control("q")
    for _ in range(15):
        assert control("q" + "".join(generator.choices(fragments, k=10)) + "q") == own


def test_every_end_that_the_file_names_or_llama_cpp_knows_ends_an_answer(real: RealVocabulary) -> None:
    ends = {"<|im_end|>", "<|endoftext|>", "<end_of_turn>", "<eos>", "</s>"} & real.vocab.control.keys()
    assert len(ends) >= 2
    assert {real.vocab.control[text] for text in ends} <= real.vocab.eog
    assert all(real.vocab.piece(token) == b"" for token in real.vocab.eog)
