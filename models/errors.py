"""What can go wrong with model files, as one tree; every message is one line that ends with what to do next.

ModelsError
├── UnknownModel         no model or pair has that id
├── NotInstalled         known, but not on this machine
├── BadFile              a file is not what it should be
│   ├── NotGGUF          something else, or a version that cannot be read
│   ├── NotCheckpoint    a folder that is no Transformers checkpoint
│   ├── Truncated        cut off: shorter than its header says
│   ├── Oversized        longer than its header says
│   └── WrongHash        the right length with the wrong bytes
├── NoSpace              the drive is too full
├── NotWritable          a folder or file cannot be read or written
├── DownloadFailed       the package index, the network or pip said no
├── Offline              a download was asked for while connections are forbidden
├── Cancelled            the user stopped it; what is finished is kept
└── Busy                 another process holds what is needed
"""


class ModelsError(Exception):
    """Base of all errors of this package; its text is one line that says what to do next."""


class UnknownModel(ModelsError):
    """No model or pair has that id."""


class NotInstalled(ModelsError):
    """The model is known but not on this machine."""


class BadFile(ModelsError):
    """A file is not what it should be."""


class NotGGUF(BadFile):
    """The file is something else, or a GGUF of a version that cannot be read."""


class NotCheckpoint(BadFile):
    """The folder is no Transformers checkpoint, or not one of a language model."""


class Truncated(BadFile):
    """The file ends before its header says."""


class Oversized(BadFile):
    """The file goes on after its header says."""


class WrongHash(BadFile):
    """The bytes are not the ones that were published."""


class NoSpace(ModelsError):
    """The drive cannot hold what is needed."""


class NotWritable(ModelsError):
    """A folder or a file cannot be read or written."""


class DownloadFailed(ModelsError):
    """A part could not be fetched."""


class Offline(ModelsError):
    """Connections are forbidden."""


class Cancelled(ModelsError):
    """The user stopped it; finished parts are kept."""


class Busy(ModelsError):
    """Another process holds what is needed."""
