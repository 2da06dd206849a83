"""The computer that a run has: its memory, its devices, and how threads wait. Import its modules one by one."""
