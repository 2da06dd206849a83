"""Nearest neighbors: classification by their vote, and retrieval."""
