"""One run on many labeled sets, in one table."""
