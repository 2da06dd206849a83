"""From images to a backbone in minutes, without a download: the demonstration of `vantage demo`."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from vantage.data import Photographs
from vantage.encoders import MLP, Encoder, ResNet, Shared
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.evaluate import KNN, LinearCached, evaluate
from vantage.progress import Progress, QuietProgress
from vantage.recipes import simclr
from vantage.schedules import CosineByStep
from vantage.storage.tables import Table
from vantage.training.loop import train
from vantage.training.optimizers import AdamW
from vantage.training.run import Data, Hardware, Monitoring, Run
from vantage.views import IMAGENET, Augmentation, ColorJitter, Grayscale, HorizontalFlip, RandomResizedCrop, Views

__all__ = ["MARGIN", "Demonstration", "demo", "demo_run"]

MARGIN = 5.0
"""Points of kNN accuracy by which the trained encoder must beat both baselines to have won clearly."""


@dataclass(frozen=True)
class Demonstration:
    """The results of the demonstration."""

    folder: Path
    """The run's folder."""

    accuracies: dict[str, tuple[float, float]]
    """kNN and linear accuracy on the test patches, in percent, by encoder: raw pixels, random encoder, trained
    encoder."""

    seconds: float
    """How long everything took."""

    @property
    def won(self) -> bool:
        """Whether the trained encoder beats both baselines by `MARGIN` points of kNN and is no worse by a linear
        classifier."""
        *others, (knn, linear) = self.accuracies.values()
        return all(knn >= other + MARGIN and linear >= rival for other, rival in others)

    def lines(self) -> list[str]:
        """The table, in words and numbers."""
        rows = tuple((name, f"{knn:.1f}", f"{linear:.1f}") for name, (knn, linear) in self.accuracies.items())
        verdict = "The trained encoder wins clearly."
        if not self.won:
            verdict = f"The trained encoder did NOT win clearly (by {MARGIN:g} points of kNN, and linear too)."
        return [
            *Table(("accuracy in %", "kNN", "linear"), rows).lines(),
            verdict,
            f"The task: which of {len(Photographs().classes)} photographs a patch is from; no pixel is in both splits.",
            f"The backbone is in {self.folder} (took {self.seconds:.0f} s in all).",
            f"Next: vantage export {self.folder} --to torchvision",
        ]


def demo_run() -> Run:
    """SimCLR on 32-pixel patches: a ResNet-18 with its ordinary stem, weak views, AdamW, five epochs.

    Unlike the recipe `simclr`, so that minutes are enough on a CPU: AdamW, since LARS needs a long warm-up; MoCo v2's
    head; τ .2; a color jitter of two fifths and rarer gray, since patches of one photograph differ by their colors.
    Chosen on a part of the training patches; the test patches had no say.
    """
    statistics = IMAGENET.normalize()
    jitter = ColorJitter(0.16, 0.16, 0.16, 0.04, probability=0.8)
    view = Augmentation(RandomResizedCrop(32, (0.2, 1.0)), (HorizontalFlip(0.5), jitter, Grayscale(0.1), statistics))
    base = simclr(size=32)
    return replace(
        base,
        recipe="demo",
        views=Views((view, view)),
        encoders=Shared(Encoder(ResNet(18), MLP(512, 128))),
        branches=tuple(replace(branch, estimator=InfoNCE(0.2)) for branch in base.branches),
        optimizer=AdamW(weight_decay=1e-2),
        learning_rate=CosineByStep(1e-3),
        epochs=5,
        batch_size=128,
        data=Data("photographs:train"),
        hardware=Hardware(precision="32-true"),
        monitoring=Monitoring(log_every=2),
    )


def demo(folder: Path, progress: Progress | None = None) -> Demonstration:
    """Train on patches of photographs that come with scikit-image and scikit-learn, and compare. Needs no network.

    Raises `UserError` if the folder already holds a run.
    """
    start = time.monotonic()
    progress = progress or QuietProgress()
    if (folder / "settings.json").exists():
        raise UserError(f"{folder} already holds a run: name another folder with --out, or remove it")
    train(demo_run(), folder, progress)
    columns: dict[str, list[float]] = {"raw pixels": [], "random encoder": [], "trained encoder": []}
    for protocol in (KNN(k=20, temperature=0.1), LinearCached(l2=(1e-2,))):
        sources = Photographs("train"), Photographs("test")
        result = evaluate(folder, protocol, *sources, baselines=True, work=Work(progress=progress))
        for name, values in columns.items():
            values.append(result.outcomes["demo" if name == "trained encoder" else name].accuracy.top1)
    progress.stop()
    accuracies = {name: (knn, linear) for name, (knn, linear) in columns.items()}
    return Demonstration(folder, accuracies, time.monotonic() - start)
