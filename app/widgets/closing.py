"""What comes back from a thread while its widget is being taken away finds nothing to show it in; that is no fault."""

from contextlib import suppress

from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.dom import NoScreen

unless_closing = suppress(NoMatches, NoScreen, ScreenStackError)
"""Goes round what touches other widgets after an await that may outlive them."""
