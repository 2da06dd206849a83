"""The page: values and pictures put into the templates, which escape everything."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from vantage.facts.run_facts import RunFacts
from vantage.measures import layout
from vantage.report.clusters import Clusters
from vantage.report.curves import Chart, curves
from vantage.report.drawing import Line, chart
from vantage.report.gallery import Gallery, ImageFacts
from vantage.report.sprite import Sprite
from vantage.storage.provenance import command, versions

__all__ = ["MapSection", "RunSections", "render"]

_ROUNDING = 1e-9  # share of the variance below the resolution of float32 features


@dataclass(frozen=True)
class RunSections:
    """Everything that the page shows about one run."""

    facts: RunFacts
    """What its folder records."""
    views: str
    """Picture of the views that its network sees; empty if they cannot be made."""
    views_problem: str
    """Why there is no picture of views."""
    images: ImageFacts | None
    """What its features show; None without a checkpoint."""
    clusters: Clusters | None
    """Its clusters; None if it makes none."""
    gallery: Gallery | None
    """The pictures; None without a checkpoint."""
    mosaic: str = ""
    """Its map as a picture, for readers without JavaScript; empty without a map."""
    map_data: dict[str, Any] | None = None
    """Its map for the script, see `vantage.report.map_data`; None without a map."""


@dataclass(frozen=True)
class MapSection:
    """What the maps of all runs have in common."""

    images: dict[str, Any]
    """Names, labels and folders of the images, see `vantage.report.map_data`."""
    sprite: Sprite
    """The thumbnails."""
    runs: list[dict[str, Any]]
    """The maps of the runs; `number` is the position of the run on the page."""

    @property
    def labeled(self) -> bool:
        """Whether the images have labels."""
        return self.images["label"] is not None

    @property
    def in_folders(self) -> bool:
        """Whether the images come from more than one folder."""
        return len(self.images["folders"]) > 1

    @property
    def clustered(self) -> bool:
        """Whether any run has clusters."""
        return any(run["cluster"] is not None for run in self.runs)

    @property
    def laid_out(self) -> int:
        """How many images t-SNE laid out; each of the others lies among its nearest of these."""
        return min(self.images["count"], layout.MOST_LAID_OUT)

    @property
    def data(self) -> dict[str, Any]:
        """Everything that the script reads, except the thumbnails."""
        sprite = {"side": self.sprite.side, "columns": self.sprite.columns, "step": self.sprite.step}
        return {"images": self.images, "sprite": sprite, "runs": self.runs}


def render(runs: Sequence[RunSections], maps: MapSection | None, shown: int, images: int, fingerprint: str) -> str:
    """The page as HTML. It shows `shown` of the `images` images of a set with this fingerprint."""
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("vantage.report", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["flags"] = _flags
    script = "".join(map(_file, ("map.js", "colors.js", "controls.js"))) if maps else ""
    values: dict[str, Any] = {
        "map": maps,
        "script": Markup(script),
        "policy": f"; script-src '{_digest(script)}'" if maps else "",
        "runs": runs,
        "curves": curves([run.facts for run in runs]),
        "spectra": _spectra(runs),
        "shown": shown,
        "images": images,
        "fingerprint": fingerprint,
        "style": Markup(_file("style.css")),
        "command": command(),
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
    }
    return environment.get_template("page.html").render(values)


def _flags(text: str) -> Markup:
    """Escape a text and mark its command-line options, so that no line breaks inside one."""
    return Markup(re.sub(r"(?<![\w-])--[a-z][a-z-]*", r'<code class="flag">\g<0></code>', str(escape(text))))


def _file(name: str) -> str:
    return files("vantage.report").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """The hash by which the page's content security policy allows this script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _spectra(runs: Sequence[RunSections]) -> list[Chart]:
    """The spectrum of the features, with a line for each run."""
    shares = [(number, run, run.images.spectrum.share) for number, run in enumerate(runs) if run.images is not None]
    lines = [
        Line(run.facts.name, [(float(n + 1), one) for n, one in enumerate(share) if one > _ROUNDING], number)
        for number, run, share in shares
    ]
    drawing = chart("Share of variance by principal direction", lines, "principal direction", log=True)
    about = "Share of the variance along each principal direction, largest first; both axes are logarithmic."
    if any(share and min(share) <= _ROUNDING for _, _, share in shares):
        about += " Shares below a billionth are rounding and left out."
    return [Chart("Spectrum of the features", about, drawing)] if drawing else []
