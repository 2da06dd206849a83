"""Where images come from, one kind of source a file; the index is that of `vantage.data`."""
