"""Semantic segmentation on a frozen backbone."""
