"""A loaded pair: the target, its draft if it has one, and what was found out about them on this machine."""

from dataclasses import dataclass, field
from typing import Literal

from engine.calibration_store import Key
from engine.config import Exactness
from engine.costs import FLAT, Costs
from engine.events import Loaded
from engine.lessons import Lessons
from engine.model import Model
from engine.stats import EngineName, HeldAs
from engine.study import Study
from engine.verdict import Change

OFF = "off: the target's cache cannot go back over refused drafts"
"""Why a pair whose target has no reach never drafts."""


@dataclass(slots=True)
class Pair:
    """Two models that fit, with the settings they were loaded with."""

    target: Model
    draft: Model | None = None
    target_name: str = "target"
    draft_name: str | None = None
    exact: Exactness = "normal"
    engine: EngineName = "demo"
    """What runs the target."""
    weights: str | None = None
    """How the torch engine holds them; None: as the file does."""
    kv: HeldAs = "f16"
    flash_attention: Literal["on", "off"] = "off"
    threads: int = 1
    device: str = "cpu"
    costs: Costs = FLAT
    width_limit: int | None = None
    """Most tokens a verifying pass may hold so that its logits equal single passes bit for bit; None: any."""
    change: Change | None = None
    """How far wide passes were seen to change logits; None: not measured."""
    exit_layers: int | None = None
    """How many of the target's first layers draft for the rest; None: no early exit."""
    exit_agreement: float | None = None
    """In what share of places their choice was the whole target's in the calibration; None: not measured."""
    lessons: Lessons | None = None
    """Where what its answers teach is kept; None: nowhere."""
    key: Key | None = None
    """All that decides what the target computes; None for models without files."""
    study: Study | None = None
    """What may still be measured of it."""
    load_s: float = 0.0
    notes: list[str] = field(default_factory=list)
    can_draft: bool = True

    def __post_init__(self) -> None:
        reach = self.target.reach
        self.can_draft = self.can_draft and reach != 0
        if reach is None:
            most = ""
        elif reach:
            most = f"drafts are of {reach} tokens at most: the target's cache can take back no more"
        else:
            most = f"speculation is {OFF}"
        if most:
            self.notes.append(f"{most}; a turn that changes what was said before is read from the start of the chat")
        if reach != 0 and self.draft is not None and self.draft.reach is not None:
            self.notes.append("the draft model proposes one token at a time: its cache cannot go back over more")

    @property
    def loaded(self) -> Loaded:
        """What the user is told."""
        return Loaded(
            target=self.target_name,
            draft=self.draft_name,
            n_ctx=self.target.n_ctx,
            device=self.device,
            notes=list(self.notes),
        )

    def close(self) -> None:
        """Free both models."""
        for model in (self.target, self.draft):
            if model is not None:
                model.close()
