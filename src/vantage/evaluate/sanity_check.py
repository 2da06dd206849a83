"""Whether training helped: a quick check at the end of a run, on images that it did not train on, if there are any.

q: images looked up   d: width of the features
"""

from dataclasses import dataclass
from pathlib import Path

from torch.nn.functional import normalize

from vantage.data.sources.source import Source, labels_of
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import split, split_to_look, with_labels
from vantage.encoding import Work
from vantage.evaluate.judge import judge, with_baselines
from vantage.evaluate.protocols.neighbors.knn import KNN
from vantage.evaluate.protocols.neighbors.picture import retrieval_picture, rows_of
from vantage.evaluate.protocols.neighbors.retrieval import neighbors
from vantage.evaluate.result import Result, path_of, save
from vantage.evaluate.task import Task
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder
from vantage.frozen.labeled_features import finite_features
from vantage.measures.accuracy import error_of_difference
from vantage.measures.sphere import effective_rank
from vantage.storage.files import result_file
from vantage.training.images import held_out_part, training_part
from vantage.training.run import Data

__all__ = ["SanityCheck", "sanity_check"]

_BANK, _LOOKED_UP, _NEIGHBORS = 5_000, 2_000, 20
_LEAST_LABELED = 100


@dataclass(frozen=True)
class SanityCheck:
    """What the check of a run found."""

    beats_baselines: bool | None
    """Whether training beat raw pixels and a random encoder; None if there are too few labels to tell."""

    lines: tuple[str, ...]
    """The same in words."""


def sanity_check(run_folder: Path, source: Source, work: Work | None = None) -> SanityCheck:
    """Whether a run has learned something, evaluated on `source`: all images that it was given, held out or not.

    With labels: kNN accuracy (k 20, temperature .07) on at most 2,000 images that the run held out (`Data.hold_out`),
    or on a tenth of all images if it held out none. Their neighbors are looked up among at most 5,000 of the others.
    Raw pixels and a random encoder of the same architecture are evaluated in the same way, and training helped if it is
    above both by more than two standard errors. The result is kept in the run's folder.

    With fewer than 100 images whose class has another image, or only one such class: the effective rank of the features
    beside that of a random encoder, and a picture of nearest neighbors. No test split is used.
    """
    work, encoder = work or Work(), load(run_folder)
    data, label = encoder.run.data, labels_of(source)
    class_sizes = label[label >= 0].bincount()
    class_sizes = class_sizes[class_sizes > 1]
    if int(class_sizes.sum()) < _LEAST_LABELED or len(class_sizes) < 2:
        start = "too few labels to measure accuracy" if (label >= 0).any() else "without labels"
        return _without_labels(run_folder, encoder, source, work, start)
    if data.hold_out:
        bank, query, unseen = training_part(source, data), held_out_part(source, data), True
    else:
        (bank, query), unseen = split(source, 0.1), False
    (bank, _), (query, _) = with_labels(bank), with_labels(query)
    bank, query = _some(bank, _BANK), _some(query, _LOOKED_UP)
    test_split = f"{len(query):,} {'held-out training images' if unseen else 'of the images that were trained on'}"
    task = Task(KNN(min(_NEIGHBORS, len(bank))), bank, query, test_split)
    result = judge(task, with_baselines(encoder, None, task), work)
    save(result, path_of(result, run_folder))
    return _compare(result, len(query), test_split)


def _compare(result: Result, count: int, test_split: str) -> SanityCheck:
    top1, *others = (outcome.accuracy.top1 for outcome in result.outcomes.values())
    gaps = [(top1 - other, 2 * error_of_difference(top1, other, count)) for other in others]
    beats_all = all(gap > noise for gap, noise in gaps)
    accuracies = ", ".join(f"{name} {outcome.accuracy.top1:.1f} %" for name, outcome in result.outcomes.items())
    if beats_all:
        verdict = "training helped: it is above raw pixels and a random encoder of the same kind"
    elif all(gap > -noise for gap, noise in gaps):
        verdict = (
            f"training is not clearly above both (differences below {max(n for _, n in gaps):.1f} points are chance)"
        )
    else:
        verdict = "training did NOT help: raw pixels or a random encoder do better"
    return SanityCheck(beats_all, (f"kNN on {test_split}: {accuracies}", verdict))


def _without_labels(run_folder: Path, encoder: FrozenEncoder, source: Source, work: Work, start: str) -> SanityCheck:
    some = _some(source, _LOOKED_UP)
    random = random_encoder(encoder.run, encoder.run.seed)
    ranks = []
    for one in (encoder, random):
        vector = normalize(finite_features(one, some, work).float(), dim=1)
        ranks.append(effective_rank(vector.T @ vector))
    first = (
        f"{start}: the features of {len(some):,} images fill {ranks[0]:.1f} of {encoder.width} dimensions"
        f" (effective rank; random encoder {ranks[1]:.1f})"
    )
    if len(some) < 2:
        return SanityCheck(None, (first,))
    bank, query = split_to_look(some)
    query = SourceSubset(query, rows_of(query, min(8, len(query))))
    nearest = neighbors(encoder, bank, query, min(6, len(bank)), work)
    picture = retrieval_picture(nearest, bank, query, range(len(query)), f"{encoder.name}: nearest neighbors")
    out = run_folder / "evaluations" / "neighbors.png"
    with result_file(out, "the picture") as file:
        picture.save(file, "PNG")
    return SanityCheck(None, (first, f"judge for yourself whether neighbors look alike: {out}"))


def _some(source: Source, most: int) -> Source:
    """At most `most` images of a source, equally many of each class if there are labels."""
    return source if len(source) <= most else training_part(source, Data(max_images=most))
