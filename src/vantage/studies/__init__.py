"""Investigations of many runs: analyses, sweeps, learned views, reproductions of papers."""
