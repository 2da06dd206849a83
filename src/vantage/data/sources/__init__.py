"""Where images come from, one kind of source per file; `vantage.data` exports the public names."""
