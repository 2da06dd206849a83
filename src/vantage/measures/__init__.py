"""Pure functions of features, scores and labels."""
