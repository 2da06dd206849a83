"""Evaluation protocols, one folder for each family."""
