"""Token ids in, events out: speculative decoding on one machine, with no window and no network."""
