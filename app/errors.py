"""What can go wrong in the app itself; every message is one line that says what to do next.

AppError
├── UsageError         the command line is wrong (exit code 2)
├── SettingsError      a settings file or an environment variable is wrong
├── NothingInstalled   there is no model to run
└── NotEnoughMemory    the models do not fit the memory that is free
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
