"""Fixtures for tests on real models, and how property tests choose their examples.

Model files are named by the environment and fetched by make, never by a test.  Examples are the same in every run;
`pytest --hypothesis-profile=explore` looks for new ones.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("repeatable")


def _file(variable: str, target: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.fail(
            f"{variable} names no model file: run the tests by `make {target}`, which fetches it", pytrace=False
        )
    path = Path(value)
    if not path.is_file():
        pytest.fail(f"{variable} names {path}, which is no file: run `make {target}`, which fetches it", pytrace=False)
    return path


@pytest.fixture(scope="session")
def tiny_path() -> Path:
    """SmolLM2 135M."""
    return _file("PACELINE_TEST_TINY", "test")


@pytest.fixture(scope="session")
def pair_paths() -> tuple[Path, Path]:
    """Target and draft of the coder pair."""
    return _file("PACELINE_TEST_TARGET", "test-pair"), _file("PACELINE_TEST_DRAFT", "test-pair")
