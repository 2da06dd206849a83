"""Write the report about one or more runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from vantage import draws
from vantage.composition.field_types import expect
from vantage.data.sources.source import Source, cache_key, refuse_path
from vantage.data.sources.subset import SourceSubset
from vantage.encoding import Work
from vantage.errors import UserError, quantity
from vantage.facts.run_facts import RunFacts
from vantage.frozen.encoder import load
from vantage.frozen.feature_cache import features_of
from vantage.machine.usual_torch import usual_torch
from vantage.measures.layout import FEWEST_PLACED
from vantage.report.clusters import Clusters, clusters_of
from vantage.report.gallery import gallery, image_facts
from vantage.report.layout import stored_places
from vantage.report.map_data import images_data, run_data
from vantage.report.named_facts import named_facts
from vantage.report.page import MapSection, RunSections, render
from vantage.report.pictures import Thumbnails, views_picture
from vantage.report.sprite import Cells, cells_of, mosaic, sprite_of
from vantage.storage.files import write_result

__all__ = ["MOST_BYTES", "MOST_IMAGES", "MOST_RUNS", "check_size", "sample_of", "write_report"]

MOST_RUNS, MOST_IMAGES, MOST_BYTES = 6, 50_000, 8_000_000
"""Most runs on a page, images of all runs together, and bytes."""

_SPRITE_BYTES = (2_600_000, 1_300_000, 600_000, 0)
"""Limits for the bytes of the map's thumbnails; the first at which the page fits its own limit is used."""


@usual_torch()
def write_report(
    folders: Sequence[Path | str],
    source: Source,
    out: Path | str,
    *,
    images: int = 10_000,
    network: int | None = None,
    work: Work | None = None,
) -> list[RunFacts]:
    """Write a report about runs and how they represent the images of `source`: one HTML file below 8 MB that needs no
    network connection and no server, and can be read without JavaScript. Returns the facts of the runs, with verdicts.

    If there are more than `images` images, that many are drawn with seed 0, and the page says so. `network` is the
    number of a network for runs that trained several; if omitted, their features are concatenated. A run without a
    checkpoint or a finished epoch gets a page too, which says what is missing. The positions of images on the map are
    cached in the folder `report` of each run. Weights from elsewhere (`torchvision:resnet18=FILE`) may take the place
    of a folder; their page has no curves and no views.

    Raises `UserError` for a folder without a run, a damaged checkpoint, fewer than two images, more than 6 runs, more
    than 50,000 images for all runs together, and a file that cannot be written. In these cases, nothing is written.
    """
    work = work or Work()
    expect(folders, list | tuple, "the list of runs", "folders, such as ['runs/first']")
    refuse_path(source)
    check_size(len(folders), images)
    runs = named_facts([Path(folder) for folder in folders])
    _check_images(source)
    numbers = sample_of(len(source), images)
    sample = source if len(numbers) == len(source) else SourceSubset(source, numbers)
    thumbnails = Thumbnails(sample, 80 if len(runs) == 1 else 64)
    page_images = _Images(source, numbers, sample, thumbnails, cells_of(sample, work))
    sections = [_sections(facts, page_images, network, work) for facts in runs]
    write_result(Path(out), _render_within_limit(sections, page_images), "the report")
    return runs


@dataclass(frozen=True)
class _Images:
    """The images of a page."""

    source: Source
    numbers: Int[Tensor, "n"]
    sample: Source
    thumbnails: Thumbnails
    cells: Cells


def _render_within_limit(sections: list[RunSections], images: _Images) -> bytes:
    """The page with as many map thumbnails as fit. Raises `UserError` if it is too large even without any."""
    runs = [{**one.map_data, "number": number} for number, one in enumerate(sections) if one.map_data is not None]
    facts, page = images_data(images.sample), b""
    for most in _SPRITE_BYTES:
        maps = MapSection(facts, sprite_of(images.cells, most), runs) if runs else None
        counts = (len(images.sample), len(images.source))
        page = render(sections, maps, *counts, images.source.fingerprint()).encode()
        if len(page) < MOST_BYTES:
            return page
    raise UserError(
        f"the page would take {len(page) / 1e6:.1f} MB, but must stay below {MOST_BYTES / 1e6:.0f} MB: name fewer "
        "runs, or fewer images (--images)"
    )


def sample_of(total: int, count: int) -> torch.Tensor:
    """The indices of at most `count` of `total` images, drawn with seed 0, in ascending order."""
    if total <= count:
        return torch.arange(total)
    return draws.permutation(total, 0)[:count].sort().values


def check_size(runs: int, images: int) -> None:
    """Raises `UserError` if one page cannot show this many runs with this many images each; reads nothing."""
    if runs > MOST_RUNS:
        raise UserError(f"{runs} runs are too many for one page: name at most {MOST_RUNS}")
    if not 2 <= images <= MOST_IMAGES // runs:
        request = f"{quantity(images, 'image')} for {quantity(runs, 'run')}"
        raise UserError(f"{request}: give from 2 to {MOST_IMAGES // runs:,} (--images)")


def _check_images(source: Source) -> None:
    if len(source) < 2:
        raise UserError("a report needs at least two images, since it shows each beside its neighbors")


def _views(facts: RunFacts, sample: Source) -> tuple[str, str]:
    """The picture of a run's views, or why there is none."""
    if facts.elsewhere:
        return "", "The views that trained these weights are not known."
    try:
        return views_picture(facts.run.views, sample, 5, facts.run.seed), ""
    except UserError as refusal:
        return "", f"The views cannot be made from these images: {refusal}"


def _sections(facts: RunFacts, images: _Images, network: int | None, work: Work) -> RunSections:
    sample = images.sample
    views, problem = _views(facts, sample)
    if not facts.checkpoint:
        return RunSections(facts, views, problem, None, None, None)
    encoder = load(facts.path, network)
    vector = features_of(encoder, sample, work)
    if not bool(torch.isfinite(vector).all()):
        raise UserError(f"{facts.name} gives features that are not finite: train it again at a lower learning rate")
    clusters = None if facts.elsewhere else clusters_of(facts.folder, images.source)
    if clusters is not None and clusters.label is not None:
        clusters = Clusters(clusters.label[images.numbers])
    facts_of_images = image_facts(vector, sample)
    sections = RunSections(
        facts, views, problem, facts_of_images, clusters, gallery(facts_of_images, sample, images.thumbnails, clusters)
    )
    if len(sample) < FEWEST_PLACED or facts_of_images.spectrum.most == 0:
        return sections
    work.progress.line(f"{facts.name}: laying out {len(sample):,} images")
    source_facts = (encoder.digest(), repr(encoder.view), cache_key(sample))
    place = stored_places(vector, source_facts, facts.folder / "report", work.num_workers)
    data = run_data(facts.name, place, facts_of_images, clusters)
    return replace(sections, mosaic=mosaic(images.cells, place), map_data=data)
