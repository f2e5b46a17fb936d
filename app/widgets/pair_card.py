"""One pair that can be fetched: what it is, how large, and whether this machine can hold it."""

from dataclasses import dataclass

from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from app.setup import Offer
from app.themes import MUTED


class PairCard(Static, can_focus=True):
    """A pair to choose by key or mouse."""

    BINDINGS = [
        Binding("enter,space", "choose", "Download", id="first.choose", tooltip="Download this pair and chat with it"),
    ]

    @dataclass
    class Chosen(Message):
        """The user wants this pair."""

        offer: Offer

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        super().__init__(self._about(offer), id=f"pair-{offer.id.replace('.', '_')}", markup=False)

    @staticmethod
    def _about(offer: Offer) -> Content:
        from models.text import size

        memory = f"needs {size(offer.memory)} of memory, {size(offer.available)} free"
        return Content("\n").join(
            [
                Content.assemble((offer.title, "bold $primary"), (f"  {offer.id}", MUTED)),
                Content(offer.note),
                Content.assemble(
                    (f"download {size(offer.bytes)}", MUTED),
                    (" · ", MUTED),
                    (memory, MUTED if offer.fits else "$text-warning"),
                ),
            ]
        )

    def action_choose(self) -> None:
        """Choose this pair."""
        self.post_message(self.Chosen(self.offer))

    def on_click(self) -> None:
        """Choose this pair."""
        self.action_choose()
