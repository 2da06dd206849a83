"""Backbones: from images to features."""
