"""Where images come from, one kind of source a file."""
