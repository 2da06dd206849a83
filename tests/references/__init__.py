"""The formulas as the slowest obvious loops, in float64, written from the papers; nothing of the package is imported."""
