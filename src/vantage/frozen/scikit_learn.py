"""A run as a scikit-learn transformer, for pipelines and searches: images in, features out.

n: images   h, w: height and width in pixels   d: width of the features
"""

from collections.abc import Iterable
from contextlib import nullcontext
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vantage.data import CORES, Arrays, Pictures, Source
from vantage.encoding import Work
from vantage.errors import DataError, UserError
from vantage.frozen import FrozenEncoder, embed, load
from vantage.planning import plan
from vantage.storage.files import temporary_folder
from vantage.training import train

__all__ = ["VantageEncoder"]

_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("run", (str, PathLike), "the folder of a run, or torchvision:NAME=FILE or timm:NAME=FILE"),
    ("folder", (str, PathLike), "a path"),
    ("minutes", Real, "a number above 0"),
    ("network", Integral, "the number of a network, from 0"),
    ("batch_size", Integral, "a whole number, at least 1"),
    ("num_workers", Integral, "a whole number, at least 1"),
)
"""The type that each setting must have if it is given, and what to give."""


class VantageEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer from images to features: the backbone of a run, or one that `fit` trains.

    Images are a uint8 array (n, h, w, 3) or (n, h, w), a sequence of paths, Pillow images or arrays, or a `Source`.
    With `run`, `fit` reads that run's newest checkpoint and trains nothing, so every fold of a search is cheap. With
    `minutes`, `fit` plans a run for its images and this machine and trains it for that long; labels are not used. Each
    fold would train a new run: for several folds, train once and name the run.

    The features are those of `vantage.embed`. To classify by them: `make_pipeline(VantageEncoder("runs/first"),
    StandardScaler(), LogisticRegression())`.
    """

    def __init__(
        self,
        run: Any = None,  # scikit-learn's constructors accept anything; `fit` and `transform` check it
        *,
        minutes: Any = None,
        folder: Any = None,
        network: Any = None,
        device: Any = "auto",
        batch_size: Any = 256,
        num_workers: Any = None,
    ) -> None:
        """`run` is the folder of a run, or `torchvision:NAME=FILE` or `timm:NAME=FILE`. Otherwise, `minutes` is how
        long `fit` trains, and `folder` is where that run is kept (if omitted, it is not kept). `network` is the number
        of a network, if the run trained one for each view. Features are computed on `device`, `batch_size` images at a
        time; `num_workers` threads decode the images (if omitted, one per core)."""
        self.run = run
        self.minutes = minutes
        self.folder = folder
        self.network = network
        self.device = device
        self.batch_size = batch_size
        self.num_workers = num_workers

    def fit(self, X: Any, y: Any = None) -> "VantageEncoder":
        """Read the run, or train one on the images `X`; `y` is not used.

        Raises `UserError` (a `ValueError`) unless exactly one of `run` and `minutes` is given, for a folder without a
        checkpoint, and if `X` does not hold images.
        """
        source = _source_of(X)
        if (self.run is None) == (self.minutes is None):
            which = "neither" if self.run is None else "both"
            raise UserError(
                "VantageEncoder needs a run to read, or minutes to train one in, but"
                f" found {which}: give run= or minutes="
            )
        self._check()
        if self.run is not None:
            self.encoder_ = load(Path(self.run), self.network)
        else:
            self.encoder_ = self._train(source)
        self._n_features_out = self.encoder_.width
        return self

    def transform(self, X: Any) -> Float[np.ndarray, "n d"]:
        """The features of images, as float32. Raises `NotFittedError` before `fit`, and `UserError` if `X` does not
        hold images."""
        check_is_fitted(self, "encoder_")
        return embed(self.encoder_, _source_of(X), self._work()).vector.numpy()

    def _check(self) -> None:
        """Raises `UserError` for invalid settings, before any time is spent on training."""
        for name, kinds, what in _KINDS:
            value = getattr(self, name)
            is_omitted = value is None and name != "batch_size"
            if not is_omitted and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise UserError(f"{name} is {value!r}: give {what}")
        self._work().resolved_device()

    def _work(self) -> Work:
        workers = CORES if self.num_workers is None else self.num_workers
        return Work(str(self.device), self.batch_size, workers)

    def _train(self, source: Source) -> FrozenEncoder:
        run = plan(source, float(self.minutes or 0), changes={"data.hold_out": 0.0})
        with temporary_folder() if self.folder is None else nullcontext(self.folder) as folder:
            train(run, folder, source=source)
            return load(Path(folder), self.network)

    def __sklearn_tags__(self) -> Tags:
        """Images are not a table, and features are always float32."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _source_of(images: Any) -> Source:
    """Images of any accepted form as a source."""
    if isinstance(images, Source):
        return images
    if isinstance(images, np.ndarray) and images.dtype != object:
        return Arrays(images, None, "the array")
    if isinstance(images, Iterable) and not isinstance(images, str | PathLike):
        return Pictures(list(images))
    if isinstance(images, str | PathLike):
        raise DataError(f"{str(images)!r} is one path: give a list of paths, or vantage.open_source(path) for a folder")
    raise DataError(
        f"{type(images).__name__} holds no images: give a uint8 array (n, h, w, 3), or a list of paths or pictures"
    )
