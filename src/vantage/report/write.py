"""Write the page of one or more runs."""

from collections.abc import Sequence
from pathlib import Path

import torch

from vantage.data.sources.source import Source, SourceSubset
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import load
from vantage.frozen.feature_cache import features_of
from vantage.report.clusters import Clusters, clusters_of
from vantage.report.gallery import ImageFacts, gallery, image_facts
from vantage.report.page import RunSections, render
from vantage.report.pictures import Thumbnails, views_picture
from vantage.report.run_facts import RunFacts, facts_of
from vantage.storage.files import write_result

__all__ = ["MOST_BYTES", "MOST_IMAGES", "MOST_RUNS", "sample_of", "write_report"]

MOST_RUNS, MOST_IMAGES, MOST_BYTES = 6, 50_000, 8_000_000
"""Most runs of a page, images of all runs together, and bytes."""


def write_report(
    folders: Sequence[Path],
    source: Source,
    out: Path,
    *,
    images: int = 10_000,
    network: int | None = None,
    work: Work | None = None,
) -> list[RunFacts]:
    """Write one page about runs and what they make of the images of `source`: an HTML file below 8 MB that needs no
    network, no server and no script to be read. Returns the facts of the runs, with their verdicts.

    A set of more than `images` images is represented by that many, drawn with seed 0; the page says so. `network` is
    the number of the network where runs trained several; if omitted, their features are joined. A run without a
    checkpoint or a finished epoch has a page too, which says what is missing.

    Raises `UserError` for a folder without a run, a damaged checkpoint, fewer than two images, more than 6 runs, more
    than 50,000 images for all runs together, and where the file cannot be written. Nothing is written then.
    """
    work = work or Work()
    runs = facts_of(folders)
    _check(runs, source, images)
    numbers = sample_of(len(source), images)
    sample = source if len(numbers) == len(source) else SourceSubset(source, numbers)
    thumbnails = Thumbnails(sample, 80 if len(runs) == 1 else 64)
    sections = [_sections(facts, source, numbers, sample, thumbnails, network, work) for facts in runs]
    page = render(sections, len(sample), len(source), source.fingerprint()).encode()
    if len(page) >= MOST_BYTES:
        raise UserError(
            f"the page would take {len(page) / 1e6:.1f} MB, and {MOST_BYTES / 1e6:.0f} MB is the most: name fewer runs"
        )
    write_result(out, page, "the report")
    return runs


def sample_of(total: int, count: int) -> torch.Tensor:
    """The numbers of at most `count` of `total` images, drawn with seed 0, in their order."""
    if total <= count:
        return torch.arange(total)
    return torch.randperm(total, generator=torch.Generator().manual_seed(0))[:count].sort().values


def _check(runs: Sequence[RunFacts], source: Source, images: int) -> None:
    if len(runs) > MOST_RUNS:
        raise UserError(f"{len(runs)} runs are too many for one page: name at most {MOST_RUNS}")
    if not 2 <= images <= MOST_IMAGES // len(runs):
        raise UserError(
            f"{images:,} images for {len(runs)} run{'s' * (len(runs) > 1)}: give from 2 to {MOST_IMAGES // len(runs):,}"
        )
    if len(source) < 2:
        raise UserError("a report needs at least two images, since it shows each beside its neighbors")


def _sections(
    facts: RunFacts,
    source: Source,
    numbers: torch.Tensor,
    sample: Source,
    thumbnails: Thumbnails,
    network: int | None,
    work: Work,
) -> RunSections:
    try:
        views, problem = views_picture(facts.run.views, sample, 5, facts.run.seed), ""
    except UserError as refusal:
        views, problem = "", str(refusal)
    if not facts.checkpoint:
        return RunSections(facts, views, problem, None, None, None)
    vector = features_of(load(facts.folder, network), sample, work)
    if not bool(torch.isfinite(vector).all()):
        raise UserError(f"{facts.name} gives features that are not finite: train it again at a lower learning rate")
    clusters = clusters_of(facts.folder, source)
    if clusters is not None and clusters.label is not None:
        clusters = Clusters(clusters.label[numbers])
    measured: ImageFacts = image_facts(vector, sample)
    return RunSections(facts, views, problem, measured, clusters, gallery(measured, sample, thumbnails, clusters))
