"""What the package offers, and that importing it is light."""

import subprocess
import sys
from pathlib import Path

import models
from models import errors

HEAVY = {"numpy", "pip", "psutil", "llama_cpp", "torch", "textual", "gguf", "difflib", "tomllib"}


def test_the_face_is_sorted_and_whole() -> None:
    assert list(models.__all__) == sorted(models.__all__, key=lambda name: (not name[0].isupper(), name))
    assert all(hasattr(models, name) for name in models.__all__)


def test_every_error_has_the_one_base() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert len(kinds) > 10
    assert all(issubclass(kind, models.ModelsError) for kind in kinds)
    assert all(kind.__name__ in (errors.__doc__ or "") for kind in kinds if kind is not models.ModelsError)


def test_every_folder_of_modules_is_a_package() -> None:
    root = Path(models.__file__).parent
    folders = {path.parent for path in root.rglob("*.py")}
    assert root / "sources" in folders
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == [], "rules of imports need it"


def test_importing_the_package_imports_nothing_heavy() -> None:
    script = "import sys, models; print(*(name for name in sys.modules if '.' not in name))"
    root = Path(models.__file__).parents[1]
    ran = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(ran.stdout.split())
