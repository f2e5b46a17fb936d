"""The target of the coder pair as Q4_0: another target, whose text may differ, on which a draft model can pay here.

Run: PACELINE_TEST_TARGET=... python tests/bench/q4_0_target.py FILE.gguf
Then: paceline tune --target FILE.gguf --draft qwen2.5-coder-0.5b-q4_k_m; its last line says what to name as --draft
"""

import sys
from pathlib import Path

from common import model_path

from engine.backends.llamacpp_quantize import Form, quantize


def main(target: Path) -> None:
    """Write it; its output layer stays finer, as llama.cpp thinks it should."""
    quantize(model_path("TARGET"), target, Form(weights="q4_0", ends=False))
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
