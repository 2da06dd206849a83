"""What the words of a command mean: options, recipes that they change, and the files that they name."""
