"""The page: facts and pictures put into the templates, where everything is escaped."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vantage.report.clusters import Clusters
from vantage.report.curves import Chart, curves
from vantage.report.drawing import Line, chart
from vantage.report.gallery import Gallery, ImageFacts
from vantage.report.run_facts import RunFacts
from vantage.storage.provenance import versions

__all__ = ["RunSections", "render"]


@dataclass(frozen=True)
class RunSections:
    """Everything that the page shows of one run."""

    facts: RunFacts
    """What its folder says."""
    views: str
    """Picture of the views that its network sees; empty where they cannot be made."""
    views_problem: str
    """Why there is no picture of the views."""
    images: ImageFacts | None
    """What its features say; none without a checkpoint."""
    clusters: Clusters | None
    """Its clusters; none if it has none."""
    gallery: Gallery | None
    """The pictures; none without a checkpoint."""


def render(runs: Sequence[RunSections], shown: int, images: int, fingerprint: str) -> str:
    """The page as HTML: about `shown` of `images` images of a set with this fingerprint."""
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("vantage.report", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    values: dict[str, Any] = {
        "runs": runs,
        "curves": curves([run.facts for run in runs]),
        "spectra": _spectra(runs),
        "shown": shown,
        "images": images,
        "fingerprint": fingerprint,
        "style": Markup(files("vantage.report").joinpath("templates/style.css").read_text(encoding="utf-8")),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
    }
    return environment.get_template("page.html").render(values)


def _spectra(runs: Sequence[RunSections]) -> list[Chart]:
    """The spectrum of the features, a line for each run."""
    lines = [
        Line(
            run.facts.name, [(float(place + 1), value) for place, value in enumerate(run.images.spectrum.share)], number
        )
        for number, run in enumerate(runs)
        if run.images is not None
    ]
    drawing = chart("Share of variance by principal direction", lines, "principal direction", log=True)
    about = "Share of the variance along each principal direction, largest first; both axes are logarithmic."
    return [Chart("Spectrum of the features", about, drawing)] if drawing else []
