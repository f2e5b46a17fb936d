"""Backends: one Model each."""
