"""Where model files come from: one module for each kind of source."""
