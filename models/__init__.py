"""What can be run, what is on disk, and how it gets there."""
