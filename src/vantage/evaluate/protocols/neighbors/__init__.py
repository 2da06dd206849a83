"""Nearest neighbors: classification by vote, and retrieval."""
