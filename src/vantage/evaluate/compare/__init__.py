"""Several runs by several protocols, in one table."""
