"""The outcome of a run: the frozen encoder, its features, and files that other libraries load."""

from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.frozen.features import Features, embed

__all__ = ["Features", "FrozenEncoder", "embed", "load", "random_encoder", "raw_pixels"]
