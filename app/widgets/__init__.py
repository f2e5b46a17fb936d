"""What the screens are made of: each widget draws one thing and knows nothing of engines and models."""
