"""What can go wrong in the app itself; every message is one line that says what to do next.

AppError
├── UsageError         the command line is wrong (exit code 2)
├── SettingsError      a settings file or an environment variable is wrong
├── NothingInstalled   there is no model to run
├── NotEnoughMemory    the models do not fit the memory that is free
├── AttachmentRefused  a file that a message should carry is no text, too large or not there
├── TransferError      a conversation cannot be written to a file of the user's, or read from one
├── EditorFailed       the user's editor is not there or failed; the text is as it was
└── StoreError         the conversations cannot be read or written; nothing of them is lost by it
    ├── StoreDamaged   their file is broken
    └── NotStored      what is asked for is not among them
"""

INTERRUPTED = 130
"""The exit code after Ctrl-C, which is no error."""


class AppError(Exception):
    """Base of the app's own errors; its text is one line that says what to do next."""


class UsageError(AppError):
    """The command line asks for what cannot be."""


class SettingsError(AppError):
    """A settings file or an environment variable holds what cannot be."""


class NothingInstalled(AppError):
    """No pair of models is on this machine."""


class NotEnoughMemory(AppError):
    """The models do not fit the memory that is free."""


class AttachmentRefused(AppError):
    """A file cannot go with a message."""


class EditorFailed(AppError):
    """The user's own editor could not be used."""


class StoreError(AppError):
    """The conversations cannot be read or written now; nothing of them is lost by it."""


class StoreDamaged(StoreError):
    """The file of the conversations is broken, or no such file."""


class NotStored(StoreError):
    """A conversation or a message was deleted, or never there."""


class TransferError(AppError):
    """A conversation cannot go into that file, or come out of it."""
