"""Files that are whole or not there at all, where a result comes from, work that is kept, tables and figures."""
