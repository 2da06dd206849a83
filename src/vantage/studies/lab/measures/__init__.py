"""What is measured on the network of a cell."""
