"""What can be said of the numbers of cells, and the statistics that test it."""
