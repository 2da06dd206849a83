"""From the numbers of the cells to a verdict on each claim."""
