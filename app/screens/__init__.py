"""The screens of the window: the chat, and the first run."""
