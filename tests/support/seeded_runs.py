"""Runs of some recipes with some seeds, and their comparison on small images."""

from dataclasses import replace
from pathlib import Path

from tiny import ALLOW, cpu_work, images, saved_run, tiny_run

from vantage.composition.codec import allowing
from vantage.evaluate.compare.comparison import Comparison, compare
from vantage.training.run import Monitoring


def runs(folder: Path, **seeds: tuple[int, ...]) -> list[Path]:
    """Runs of some recipes with some seeds."""
    folders = []
    for recipe, some in seeds.items():
        for seed in some:
            folders.append(folder / f"{recipe}-{seed}")
            run = replace(tiny_run(), recipe=recipe, seed=seed, epochs=200 + len(recipe))
            saved_run(folders[-1], replace(run, monitoring=Monitoring(log_every=seed + 1)), seed)
    return folders


def compare_protocols(folders: list[Path], tmp_path: Path, *protocols) -> Comparison:
    with allowing(*ALLOW):
        return compare(folders, protocols, images(30, 0), images(12, 1), cpu_work(tmp_path))
