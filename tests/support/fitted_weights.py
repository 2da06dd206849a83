"""What protocols learn and guess, recorded while they run: their measures alone are shares of a few test images, which
hide small differences."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from vantage.evaluate.protocols.finetune import finetune, tuning
from vantage.evaluate.protocols.finetune.tuning import TunedCopy, tune
from vantage.evaluate.protocols.linear import logistic, multi, pooled, side_by_side
from vantage.evaluate.protocols.linear.crops import Epochs, epochs_of
from vantage.evaluate.protocols.neighbors import knn, retrieval
from vantage.evaluate.protocols.segmentation import segmentation
from vantage.evaluate.protocols.segmentation.feature_maps import FeatureMaps
from vantage.evaluate.protocols.svm import samples, svm
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.labeled_features import LabeledFeatures, labeled_features
from vantage.measures.confusion import Confusion

Part = dict[str, Tensor]
"""Tensors by name."""


@contextmanager
def recorded() -> Iterator[list[Part]]:
    """The weights, scores and guesses of every protocol that runs inside the `with` block, in order. What processes
    train by sums of their shares (logistic regressions, copies and decoders) is trained in float64, so that differences
    by rounding stay negligible."""
    parts: list[Part] = []

    def record(call: Callable[..., Any], part_of: Callable[[Any, Any], Part]) -> Callable[..., Any]:
        def recording(*inputs: Any, **named: Any) -> Any:
            result = call(*inputs, **named)
            parts.append({key: value.detach().cpu().clone() for key, value in part_of(result, inputs).items()})
            return result

        return recording

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logistic, "labeled_features", _features_in_double)
        tune_and_record = record(_tune_in_double, lambda made, _: made.backbone.state_dict() | made.head.state_dict())
        patch.setattr(finetune, "tune", lambda *inputs: _in_float(tune_and_record(*inputs)))
        patch.setattr(FeatureMaps, "of", _then_double(FeatureMaps.of))
        patch.setattr(segmentation, "Decoder", _then_double(segmentation.Decoder))
        for module in (knn, pooled, multi, logistic, finetune):
            patch.setattr(module, "accuracy", record(module.accuracy, lambda _, inputs: {"guess": inputs[0]}))
        for module, name, part_of in _PARTS:
            patch.setattr(module, name, record(getattr(module, name), part_of))
        yield parts


def _decoder(confusion: Confusion, inputs: Any) -> Part:
    return inputs[1].state_dict() | {"pixels": confusion.count}


_PARTS: tuple[tuple[Any, str, Callable[[Any, Any], Part]], ...] = (
    (retrieval, "neighbors", lambda rows, _: {"number": rows.number, "cosine": rows.cosine}),
    (side_by_side, "_guess", lambda _, inputs: inputs[0].tensors()),
    (logistic, "fit_logistic", lambda fit, _: {"weight": fit.weight, "bias": fit.bias}),
    (segmentation, "_count_pixels", _decoder),
    (svm, "average_precision", lambda _, inputs: {"score": inputs[0]}),
    (samples, "average_precision", lambda _, inputs: {"score": inputs[0]}),
)
"""Modules, what they call, and what to keep of its result and its arguments."""


def _then_double(make: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, with its result in float64."""
    return lambda *inputs: make(*inputs).double()


def _features_in_double(*inputs: Any) -> LabeledFeatures:
    features = labeled_features(*inputs)
    return replace(features, vector=features.vector.double())


def _tune_in_double(schedule: Any, encoder: FrozenEncoder, *rest: Any) -> TunedCopy:
    double = replace(encoder, backbone=copy.deepcopy(encoder.backbone).double())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        patch.setattr(tuning.nn, "Linear", partial(torch.nn.Linear, dtype=torch.float64))
        patch.setattr(tuning, "epochs_of", _views_in_double)
        return tune(schedule, double, *rest)


def _views_in_double(*inputs: Any) -> Epochs:
    epochs = epochs_of(*inputs)
    return Epochs(lambda epoch: ((rows, views.double()) for rows, views in epochs(epoch)), epochs.crop_method)


def _in_float(made: TunedCopy) -> TunedCopy:
    return replace(made, backbone=made.backbone.float(), head=made.head.float())
