"""The formulas as the slowest obvious loops, in float64, written from the papers; importing nothing of it."""
