"""Fine-tuning of a copy of the backbone."""
