"""Runs of every recipe small enough to train in a test, and the process that a test kills."""

import fcntl
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import torch
from tiny import TinyBackbone

import vantage
from vantage.composition.codec import allowing
from vantage.encoders import Encoder, Momentum, PerView, Role, Shared, SplitBatchNorm
from vantage.training.loop import resume, train
from vantage.training.run import Data, Hardware, Monitoring, Run

IMAGES, SIZE = 48, 16

PRELOADED = [
    *("vantage.training.loop", "vantage.recipes", "vantage.evaluate"),
    *("lightning_fabric.strategies.ddp", "tensorboard.compat.proto.event_pb2"),
    *("tensorboard.summary.writer.record_writer", "pytest", "hypothesis"),
    *("sklearn.svm", "sklearn.linear_model", "sklearn.metrics", "torchvision.transforms.v2"),
]
"""Modules that the fork server imports; all other processes are forked from it."""


def write_images(path: Path) -> str:
    """Write a file of small labeled images, colored noise; returns its path."""
    chance = np.random.default_rng(0)
    label = np.arange(IMAGES) % 3
    color = chance.uniform(40, 215, (3, 1, 1, 3))[label]
    pixels = (color + chance.normal(0, 40, (IMAGES, SIZE, SIZE, 3))).clip(0, 255).astype(np.uint8)
    np.savez(path, images=pixels, labels=label)
    return str(path)


def small_run(recipe: str, images_path: str, epochs: int = 3) -> Run:
    """A recipe with a backbone of two convolutions, batches of 8, and a checkpoint after every step."""
    run = getattr(vantage, recipe)(size=SIZE).fit(IMAGES).rescale(8, epochs)
    return replace(
        run,
        encoders=small_networks(run.encoders),
        data=Data(images_path),
        hardware=Hardware("cpu", precision="32-true"),
        monitoring=Monitoring(log_every=1, checkpoint_minutes=0.0),
    )


def small_networks(role: Role) -> Role:
    """The role with two convolutions for each backbone."""
    if isinstance(role, PerView):
        return PerView(tuple(_tiny(encoder) for encoder in role.encoders))
    assert isinstance(role, Shared | Momentum)
    return replace(role, encoder=_tiny(role.encoder))


def _tiny(encoder: Encoder) -> Encoder:
    channels = getattr(encoder.backbone, "in_channels", 3)
    encoder = replace(encoder, backbone=TinyBackbone(in_channels=channels))
    split = isinstance(encoder.normalization, SplitBatchNorm)
    return replace(encoder, normalization=SplitBatchNorm(2)) if split else encoder


def in_groups(run: Run, groups: int) -> Run:
    """The run with one encoder, whose BatchNorm has this many groups."""
    assert isinstance(run.encoders, Shared | Momentum)
    encoder = replace(run.encoders.encoder, normalization=SplitBatchNorm(groups))
    return replace(run, encoders=replace(run.encoders, encoder=encoder))


def train_in_process(recipe: str, images_path: str, folder: Path) -> None:
    """Train in a process that will be killed."""
    torch.set_num_threads(1)
    train(small_run(recipe, images_path), folder)


def resume_in_process(folder: Path) -> None:
    """Resume in a process where another one was killed."""
    torch.set_num_threads(1)
    with allowing("tiny"):
        resume(folder)


def new_process(function: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start a new process. It is forked from one that has only imported modules, which takes a tenth of the time that a
    new interpreter takes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


@contextmanager
def lock_of_another(folder: Path) -> Iterator[None]:
    """Lock the folder as another process would."""
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)
