"""What the engine is put through to see what it is worth: measured and recorded here, printed elsewhere."""
