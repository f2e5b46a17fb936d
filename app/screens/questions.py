"""What the path dialog asks: where a conversation goes, where one comes from, which model is to be added."""

from pathlib import Path
from typing import TYPE_CHECKING

from app import transfer
from app.screens.path_dialog import Question

if TYPE_CHECKING:
    from app.store.store import Store


def export(store: "Store", id: int, title: str) -> Question[Path]:
    """Where to write a conversation; the file that was written."""
    return Question(
        title="Export this conversation",
        hint="A name that ends in .json can be imported again; any other is written as Markdown.",
        verb="Export",
        do=transfer.Export(store, id),
        value=transfer.file_name(title),
    )


def take_in(store: "Store") -> Question[int]:
    """Where to read a conversation; the number of the new one."""
    return Question(
        title="Import a conversation",
        hint="A .json file that was exported here.",
        verb="Import",
        do=lambda path: transfer.take_in(store, path),
    )


def add_model() -> Question[str]:
    """Which file to register; the path as it was written."""
    return Question(
        title="Add a model of your own",
        hint="A .gguf file; it stays where it is.",
        verb="Add",
        do=lambda path: path,
    )
