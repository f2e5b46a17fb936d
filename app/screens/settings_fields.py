"""What the settings screen shows, as data: a line a setting, with its explanation, its choices and its default."""

from dataclasses import dataclass

from app.settings import Settings

Choices = tuple[tuple[str, str], ...]
"""Values, as the settings file has them, and what they are called."""
SWITCH: Choices = (("true", "on"), ("false", "off"))


@dataclass(frozen=True)
class Line:
    """One setting."""

    name: str
    label: str
    note: str
    """What it does, in one sentence."""
    choices: Choices = ()
    """What can be chosen beside the default; none where it is written."""


CONVERSATION = (
    Line("temperature", "Temperature", "0 always takes the most likely token, above 1 is bolder"),
    Line("top_k", "Top-k", "keeps the K most likely tokens; 0 keeps all"),
    Line("top_p", "Top-p", "keeps the most likely tokens up to this share; 1 keeps all"),
    Line("min_p", "Min-p", "drops tokens below this share of the most likely one; 0 drops none"),
    Line("repeat_penalty", "Repeat penalty", "makes recent tokens less likely; 1 does nothing"),
    Line("repeat_last", "Repeat last", "how many tokens back that penalty looks"),
    Line("frequency_penalty", "Frequency penalty", "makes tokens of the answer less likely with each use"),
    Line("presence_penalty", "Presence penalty", "makes tokens of the answer less likely once they are used"),
    Line("seed", "Seed", "makes an answer repeatable, with drafts on or off; to the letter in strict exactness"),
    Line("max_tokens", "Longest answer", "in tokens; where it ends there, it can be continued"),
    Line("thinking", "Thinking", "whether the model thinks before it answers",
         (("auto", "auto"), ("on", "on"), ("off", "off"))),
    Line("spec", "Speculation", "auto, off, or how many tokens to draft each round; changes speed, never what is said"),
    Line("rule", "Rule", "how drafts are judged; both are lossless; by default coupled where there is a seed",
         (("rejection", "rejection"), ("coupled", "coupled"))),
)  # fmt: skip
"""What one conversation may have of its own: the fields of `app.options.Options`."""

PROGRAM = (
    Line("exact", "Exactness", "strict: the same text with drafts on and off, bit for bit; slower, and needs a reload",
         (("normal", "normal"), ("strict", "strict"))),
    Line("idle_unload", "Unload when idle", "minutes without use until the models' memory is given back; 0 is never"),
    Line("bell", "At an answer's end", "a sound, or a notice of the terminal's where it knows them",
         (("off", "nothing"), ("sound", "sound"), ("notice", "notice"))),
    Line("theme", "Theme", "the colours; seen at once"),
    Line("colour_tokens", "Colour tokens", "by where they came from, in every answer; a key does it for one window",
         SWITCH),
    Line("thoughts", "Thoughts", "how thoughts are shown; a click opens or folds a single one",
         (("folded", "folded"), ("live", "open while it thinks"), ("open", "open"))),
    Line("history", "Keep conversations",
         "off from the next start on: nothing said is written to the disk, and what is there stays, unread, until you "
         "delete it", SWITCH),
    Line("kept_gb", "Kept for reopening",
         "gigabytes on the disk, from the next start on, for what the models have read of conversations; 0 is none"),
)  # fmt: skip
"""What holds for the whole program, and is kept in the settings file."""


UNSAID = {
    "seed": "new each time", "rule": "auto", "thinking": "auto", "spec": "auto", "exact": "normal",
    "history": "on",
}  # fmt: skip
"""What holds where nobody says anything, for those whose default is no value of a record."""


def default(name: str, settings: Settings) -> str:
    """What is in force where nothing is said, in a word; `settings` are those that lie below."""
    if (said := getattr(settings, name)) is None and name in UNSAID:
        return UNSAID[name]
    request = settings.request(())
    found = next((getattr(of, name) for of in (settings.window, request.sampling, request) if hasattr(of, name)), said)
    return {True: "on", False: "off"}[found] if isinstance(found, bool) else str(found)
