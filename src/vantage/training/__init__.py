"""A training run: its settings, the loop, its checkpoints, and what it reports on the way."""
