"""Linear classifiers on a frozen backbone."""
