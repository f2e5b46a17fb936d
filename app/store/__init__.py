"""Conversations on the disk: what was said, as a tree of messages in one SQLite file."""
