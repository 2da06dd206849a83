"""The baselines of a sweep: raw pixels and random encoders, evaluated in the same way as its runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from vantage.composition.codec import encode
from vantage.composition.fitting import parts_of
from vantage.composition.own_code import own_code
from vantage.encoders.encoder import Encoder
from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.frozen.encoder import FrozenEncoder, random_encoder, raw_pixels
from vantage.storage.cache import digest
from vantage.studies.sweep.rows import SweepRow, key_of
from vantage.studies.sweep.sweeps import SweepPoint
from vantage.training.backbone import evaluation_view
from vantage.views import EvaluationView

__all__ = ["baselines"]


def baselines(
    points: Sequence[SweepPoint], seeds: Sequence[int], *judged_by: Any
) -> Iterator[tuple[SweepRow, Callable[[], FrozenEncoder]]]:
    """Rows without accuracies, each with a function that makes its encoder: raw pixels for each evaluation view, and
    random encoders for each evaluation view and backbone.

    The key of a row follows from its encoder and from `judged_by`, which is plain data.
    """
    views: set[EvaluationView] = set()
    networks: set[tuple[EvaluationView, str]] = set()
    for point in points:
        view = evaluation_view(point.run)
        seen = (repr(view), *own_code(view))
        if view not in views:
            views.add(view)
            key = key_of((RAW_PIXELS, *seen), *judged_by)
            yield SweepRow(key, RAW_PIXELS, point.label, point.number, 0, {}), partial(raw_pixels, point.run)
        backbones = digest(
            [encode(part.backbone) for part in parts_of(point.run.encoders) if isinstance(part, Encoder)]
        )
        if (view, backbones) in networks:
            continue
        networks.add((view, backbones))
        for seed in seeds:
            network = (encode(point.run.encoders), *own_code(point.run.encoders))
            key = key_of((RANDOM_ENCODER, *seen, *network, seed), *judged_by)
            yield (
                SweepRow(key, RANDOM_ENCODER, point.label, point.number, seed, {}),
                partial(random_encoder, point.run, seed),
            )
