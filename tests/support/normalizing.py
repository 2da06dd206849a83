"""The images that share statistics in BatchNorm, counted in real networks on real processes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from small_recipes import SIDE, TwoLayers, shrink

from vantage import processes
from vantage.composition.fitting import parts_of
from vantage.encoders import Encoder
from vantage.recipes import RECIPES, VARIANTS
from vantage.training.run import Run

EVERY: tuple[Callable[[int], Run], ...] = (*RECIPES, *VARIANTS)
"""Recipes and variants."""

COUNTS = (1, 2, 4, 8)
"""Numbers of processes."""

FIRST_OF_EIGHT = (
    *("moco_v1", "moco_v2", "moco_v2_multi_crop", "ring_moco", "ball_moco", "infomin", "infomin_linear"),
    *("interclr_moco", "interclr_ring", "jcl", "jcl_vanilla", "jcl_ring", "jcl_interclr", "everything"),
    *(
        "infomin_no_jigsaw",
        "interclr_moco_released",
        "jcl_released",
        "jcl_resnet18",
        "cnce_moco",
        "ring_moco_decoupled",
    ),
)
"""Recipes that normalize an eighth of the batch together, as on eight devices: MoCo (arXiv 1911.05722, section 3.3) and
methods built on it. All others use the whole batch: SimCLR and Ring's release do, and papers with banks do not state
it."""


def expected(run: Run, name: str) -> int:
    """How many images the paper of a recipe normalizes together."""
    return run.batch_size // 8 if name in FIRST_OF_EIGHT else run.batch_size


def images_per_statistic(run: Run) -> set[int]:
    """Numbers of images of the joint batch that an output depends on, for each encoder of a run, made small, at its own
    batch size. The outputs are those of the first image of the first process and the last image of the last one."""
    (normalization,) = {part.normalization for part in parts_of(run.encoders) if isinstance(part, Encoder)}
    plain = replace(run, branches=(replace(run.branches[0], negatives=()),))  # negatives do not matter here
    numbers = set()
    for encoder in parts_of(shrink(plain, normalization).encoders):
        if isinstance(encoder, Encoder):
            assert isinstance(encoder.backbone, TwoLayers)
            shape = (run.batch_size // processes.count(), encoder.backbone.channels, SIDE, SIDE)
            network, images = encoder.build().double(), torch.randn(shape, dtype=torch.float64, requires_grad=True)
            vectors = network(images)
            for rank, row in ((0, 0), (processes.count() - 1, -1)):
                output = (vectors[row] * torch.randn(vectors.shape[1])).sum() * (processes.rank() == rank)
                (gradient,) = torch.autograd.grad(output, images, retain_graph=True)
                numbers.add(int(processes.total((gradient != 0).flatten(1).any(1).sum())))
    return numbers


def count_all(folder: Path) -> None:
    """Count for every recipe on this process, and write the result."""
    torch.manual_seed(processes.rank())
    counts = {recipe.__name__: torch.tensor(sorted(images_per_statistic(recipe(224)))) for recipe in EVERY}
    torch.save(counts, folder / f"{processes.rank()}.pt")
