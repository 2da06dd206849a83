"""The computer that a run has: its memory, its devices, and how threads wait. Nothing here is imported before use."""
