"""Backbones: images to features."""
