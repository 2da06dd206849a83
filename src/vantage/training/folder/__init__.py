"""A run's folder: its settings, its checkpoints, and who may write into it."""
