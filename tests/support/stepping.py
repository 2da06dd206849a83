"""Steps of any recipe, made small, on the pretended device: `Session.step` itself, with views and stores."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from types import SimpleNamespace

import numpy as np
import torch
from lightning_fabric.plugins import Precision
from pretend_gpu import DEVICE, Pretend, Pretended, Wait, pretended, values
from small_runs import small_networks
from torch import Tensor
from torch.nn.functional import normalize

from vantage.composition.fitting import everywhere
from vantage.data import Batch, BatchOrder, ResidentImages, StreamedImages
from vantage.data.sources.arrays import Arrays
from vantage.encoders.normalization.grouped import set_accumulation
from vantage.learner import Learner
from vantage.memory import ClusteredBank, ReclusteredBank
from vantage.records import Keys
from vantage.training.feed import Feed
from vantage.training.run import Data, Hardware, Run
from vantage.training.session import Session
from vantage.training.watching.branches import monitor_of
from vantage.views import ViewMaker
from vantage.views.operations.share import ShareGenerator

__all__ = ["BATCH", "SIZE", "Stepping", "Views", "pictures", "small"]

BATCH, SIZE = 8, 40  # from 33 pixels on there is blur


def small(run: Run, images: int) -> Run:
    """A recipe with a backbone of two convolutions and few clusters, for this many images in batches of 8."""
    run = run.fit(images).rescale(BATCH, 4)
    return replace(
        run,
        encoders=small_networks(run.encoders),
        branches=everywhere(run.branches, _few_clusters),
        data=Data(num_workers=0),
        hardware=Hardware("cpu", precision="32-true"),
    )


def _few_clusters(part: object) -> object:
    match part:
        case ClusteredBank():
            return replace(part, clusters=4, smallest=2, refresh_every=1)
        case ReclusteredBank():
            return replace(part, clusters=5, clusterings=min(2, part.clusterings), first=1)
    return part


def pictures(images: int) -> Arrays:
    """Colored noise, a little larger than the views."""
    chance = np.random.default_rng(0)
    pixels = chance.uniform(0, 255, (images, SIZE + 4, SIZE + 4, 3)).astype(np.uint8)
    return Arrays(pixels, np.arange(images) % 3, "noise")


class Views(Enum):
    """Where the views of a step are made."""

    RESIDENT = "whole images on the device"
    STREAMED = "crops that workers cut"
    SENT = "made once on the CPU, to test what comes after them in a third of the time"


class Stepping:
    """The steps of a small run, taken by the session's own `step`. All that changes is on the pretended device or, for
    comparison, on the CPU."""

    def __init__(self, run: Run, images: int, views: Views, device: torch.device = DEVICE) -> None:
        self.run, self.views, self.device, self.steps = run, views, device, 0
        self.source = pictures(images)
        torch.manual_seed(run.seed)
        session = Session.__new__(Session)
        session.run, session.source = run, self.source
        session.fabric = SimpleNamespace(  # pyright: ignore
            backward=lambda loss: loss.backward(),
            no_backward_sync=lambda model: nullcontext(),
            device=device,
            strategy=SimpleNamespace(precision=Precision()),
        )
        session.learner = Learner(run.encoders, run.branches, images, run.seed)
        set_accumulation(session.learner.networks, run.accumulate)
        session.monitor = monitor_of(run, session.learner)
        self.images = ResidentImages(self.source, BatchOrder(BATCH, run.seed))
        if device == DEVICE:
            pretended(session.learner)
            pretended(session.monitor)
            if views is Views.RESIDENT:
                self.images.pixels = Pretended(self.images.pixels)
        session.model = session.learner  # pyright: ignore
        session.optimizer = run.optimizer.build(session.learner)  # pyright: ignore
        streamed_images = StreamedImages(self.source, run.views, BatchOrder(BATCH, run.seed), num_workers=0)
        session.feed = Feed(streamed_images if views is Views.STREAMED else self.images, run.views)
        if views is Views.SENT:
            session.feed = _Sends(session.feed, device)  # pyright: ignore
        session.generator = ShareGenerator()
        self.session = session
        for store in session.learner.stores.values():
            if store.waits:  # pyright: ignore
                rows = normalize(torch.randn(images, session.learner.networks.width), dim=1)
                rows, image = (Pretended(t) if device == DEVICE else t for t in (rows, torch.arange(images)))
                store.begin(Keys(rows, image))  # pyright: ignore

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, on the device on which the session expects them."""
        for batch in self.images.batches(epoch):
            match self.views:
                case Views.RESIDENT:
                    yield batch
                case Views.STREAMED:
                    yield self._streamed(batch.image).to(self.device)
                case Views.SENT:
                    yield Batch(batch.image.to(self.device, non_blocking=True), batch.pixels)

    def _streamed(self, number: Tensor) -> Batch:
        """A batch of crops, as made by workers."""
        generator = torch.Generator().manual_seed(int(number.sum()))
        crops = [self.run.views.crop(self.source.image(n), generator) for n in number.tolist()]
        return Batch(number, tuple(torch.stack(view) for view in zip(*crops, strict=True)))

    def epoch(self, mode: Pretend | None = None) -> list[tuple[float, list[Wait]]]:
        """Loss of each step of the next epoch, and its waits."""
        rows: list[tuple[float, list[Wait]]] = []
        for batch in self.batches(self.steps // self.images.steps):
            start = len(mode.waits) if mode else 0
            loss = self.session.step(batch, self.steps)
            self.steps += 1
            rows.append((float(values(loss)), mode.waits[start:] if mode else []))
        return rows

    def state(self) -> dict[str, Tensor]:
        """Parameters and buffers, as CPU tensors."""
        learner = self.session.learner
        return values({**dict(learner.named_parameters()), **dict(learner.named_buffers())})


@cache
def _views(run_views: ViewMaker) -> list[Tensor]:
    """Views of the first images, made once."""
    images = torch.stack([pictures(BATCH).image(number) for number in range(BATCH)])
    return run_views.batch(images, torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class _Sends:
    """A feed that sends views made in advance, rolled along the batch by a different amount each time; of a part of the
    batch, its share of them."""

    feed: Feed
    device: torch.device

    @property
    def steps(self) -> int:
        return self.feed.steps

    def views_of(self, batch: Batch, generator: ShareGenerator) -> list[Tensor]:
        turn, (first, last, _) = int(values(batch.image)[0]), generator.share
        views = (view.roll(turn, 0)[first:last] for view in _views(self.feed.views))
        return [view.to(self.device, non_blocking=True) for view in views]
