"""Linear support vector machines on frozen features: all labels, or a few of each class."""
