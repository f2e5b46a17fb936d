"""What three turns of one conversation read, in both models, beside the tokens of the new messages.

Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/turns.py
"""

from common import ask, engine, header, model_path, spec

from engine.config import Message

TURNS = (
    "Write a Python function that merges two sorted lists.",
    "Now write a test for it with pytest, with empty lists too.",
    "What is the complexity of the function? Answer in two sentences.",
)


def main() -> None:
    """Print a line a turn."""
    header("tokens read by turn")
    for mode in ("3", "auto"):
        loaded = engine(model_path("TARGET"), model_path("DRAFT"), n_ctx=4096)
        messages: list[Message] = []
        seen = 0
        for number, text in enumerate(TURNS, start=1):
            messages.append(Message(role="user", content=text))
            answer = ask(loaded, messages, speculation=spec(mode), max_tokens=160)
            messages.append(Message(role="assistant", content=answer.text, ids=tuple(answer.ids)))
            new = len(loaded.pair.target.vocab.tokenize(text))
            cache, draft = answer.cache, answer.cache.draft
            assert draft is not None
            twice = max(0, seen - draft.reused)
            seen = loaded.pair.draft.length if loaded.pair.draft else 0
            print(
                f"--spec {mode} turn {number}: message {new} tokens, prompt {cache.prompt_tokens}; target reused "
                f"{cache.target.reused}, read {cache.target.read} (message + {cache.target.read - new}); draft reused "
                f"{draft.reused}, read {draft.read}, twice {twice}",
                flush=True,
            )
        loaded.close()


if __name__ == "__main__":
    main()
