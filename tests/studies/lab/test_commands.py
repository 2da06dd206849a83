"""Pretraining at the papers' scale, tried: composed as the command line composes it for 1.28 million images, compared
with the papers' tables, and taken one step on a few images, with an eighth of the channels."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxtyping import UInt8
from lab_entries import entry_of
from PIL import Image
from torch import Tensor

from vantage.cli import main, pretrain
from vantage.composition.fitting import everywhere, parts_of
from vantage.data import Source, SourceSubset, open_source
from vantage.encoders import Encoder, LinearHead, ResNet, Role, TinyAlexNet
from vantage.encoders.weights import shapes_only
from vantage.positives import NearMates
from vantage.progress import QuietProgress
from vantage.studies.lab import ENTRIES
from vantage.studies.sweep import Study
from vantage.training import loop
from vantage.training.run import Data, Hardware, Run
from vantage.training.start import warm_parts
from vantage.views import RGB, Flow, Patches
from vantage.views.colors.learned import LAST, write_learned

LINES = dict.fromkeys(line for entry in ENTRIES for line in entry.commands if line.startswith("vantage pretrain "))
FEW, MANY = 16, 1_281_167

ROWS = {
    "interclr": (24, "MLP", 200, 256),
    "interclr_1000": (24, "MLP", 1_000, 4_096),
    "interclr_intra_only": (24, "MLP", 200, 256),
    "interclr_weighted": (24, "MLP", 200, 256),
    "instance_discrimination_nce": (24, "linear", 200, 256),
    "instance_discrimination_pycontrast": (24, "linear", 200, 256),
    "local_aggregation_warmed": (24, "linear", 200, 128),
    "moco_v1": (24, "linear", 200, 256),
    "moco_v1_x2": (94, "linear", 200, 256),
    "moco_v1_x4": (375, "linear", 200, 256),
    "moco_v2": (24, "MLP", 200, 256),
    "moco_v2_800": (24, "MLP", 800, 256),
    "simclr": (24, "MLP", 200, 256),
    "simclr_1000": (24, "MLP", 1_000, 4_096),
    "simclr_1000_x2": (94, "MLP", 1_000, 4_096),
    "simclr_1000_x4": (375, "MLP", 1_000, 4_096),
    "pirl_vissl": (24, "linear", 800, 1_024),
    "pirl_vissl_x2": (94, "linear", 800, 1_024),
    "pirl_pycontrast": (24, "linear", 200, 256),
    "cmc_halves": (12, "linear", 240, 128),
    "cmc": (47, "linear", 240, 128),
    "cmc_x2": (188, "linear", 240, 128),
    "infomin_no_jigsaw": (24, "linear", 100, 256),
    "infomin_linear": (24, "linear", 100, 256),
    "infomin_100": (24, "MLP", 100, 256),
    "infomin": (24, "MLP", 200, 256),
    "infomin_800": (24, "MLP", 800, 256),
    "infomin_resnet101": (43, "MLP", 300, 256),
    "infomin_resnet152": (58, "MLP", 200, 256),
    "infomin_resnext101": (87, "MLP", 200, 256),
    "infomin_resnext152": (120, "MLP", 200, 256),
}
"""Millions of weights, head, epochs, and images per step, by the name of a run: InterCLR's Tables 1, 2 and 4 and its
appendix A; InfoMin's Tables 1 to 3 and 6 and its appendix C; images per step of quoted rows from their own papers."""
ENTRIES_OF_ROWS = ("interclr-table-1", "interclr-table-4", "infomin-table-1", "infomin-text-c3", "infomin-table-6")
ENTRIES_OF_ROWS += ("infomin-table-2",)


PER_STEP = {"blur": 128, "color": 128, "color_raw": 128} | dict.fromkeys(
    ("crop_moco_v1", "crop_moco_v2", "jitter_moco_v1", "jitter_moco_v2", "ladder_moco_v1"), 256
)
"""Images per step of InfoMin's sweeps, by their folder."""


class Repeated:
    """A few images, over and over."""

    def __init__(self, few: Source) -> None:
        self.few, self.classes = few, few.classes

    def __len__(self) -> int:
        return MANY

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        return self.few.image(number % len(self.few))

    def label(self, number: int) -> int | None:
        return self.few.label(number % len(self.few))

    def name(self, number: int) -> str:
        return str(number)

    def fingerprint(self) -> str:
        return self.few.fingerprint()


def narrow(part: Any) -> Any:
    """With 8 channels, however wide: with fewer, oneDNN crashes on CPUs with AVX2 only (its issue 6035)."""
    return replace(part, width_multiplier=1 / 8) if isinstance(part, ResNet | TinyAlexNet) else part


def narrowed(run: Run) -> Run:
    """The run with narrow networks."""
    return replace(run, encoders=everywhere(run.encoders, narrow))


def one_step_training(few: Source, large: Source) -> Callable[..., int]:
    """Stands in for training: networks at the paper's size without memory, and one step on a few images."""

    @cache  # many runs train the same networks
    def build(encoders: Role) -> None:
        with shapes_only():
            encoders.build()

    def train(run: Run, out: Path, *_: object) -> int:
        build(run.encoders)
        count = FEW if any(isinstance(part, NearMates) for part in parts_of(run)) else FEW // 2
        small = narrowed(run.fit(count, count).rescale(count, 1))
        small = replace(small, data=Data(), hardware=Hardware("cpu"))
        source = SourceSubset(large if isinstance(run.views, Patches) else few, range(0, FEW, FEW // count))
        assert loop.train(small, out, QuietProgress(), source=source).finished
        return 0

    return train


def images(folder: Path, seed: int = 0, side: int = 256) -> None:
    """A few images, larger than any view of them."""
    chance = np.random.default_rng(seed)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for number in range(FEW // 2):
            pixels = chance.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((side, side)).save(folder / name / f"{number}.png", compress_level=1)


def write_unlearned_views(folder: Path) -> None:
    """What `vantage views learn` writes, before its first step."""
    if not folder.exists():
        folder.mkdir(parents=True)
        write_learned(folder / LAST, Flow(), Flow().build(), RGB(), RGB().statistics)


def test_no_two_trainings_at_the_papers_scale_write_to_one_folder() -> None:
    folders = [line.split()[line.split().index("--out") + 1] for line in LINES]
    assert len(set(folders)) == len(folders), [one for one in folders if folders.count(one) > 1]


def row_of(run: Run) -> tuple[int, str, int, int]:
    """What the papers' tables say of a row."""
    encoders = [part for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    with shapes_only():
        weights = sum(p.numel() for one in encoders for p in one.backbone.build().parameters())
    (head,) = {"linear" if isinstance(one.head, LinearHead) else "MLP" for one in encoders}
    return round(weights / 1e6), head, run.epochs, run.batch_size


@pytest.mark.slow
def test_the_rows_of_tables_are_trained_as_the_papers_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows: dict[str, tuple[int, str, int, int]] = {}

    def compose(run: Run, out: Path, *_: object) -> int:
        rows[out.name] = row_of(run)
        return 0

    source = Repeated(open_source("photographs:train"))
    monkeypatch.setattr(pretrain, "look_at", lambda *_, **__: (source, ""))
    monkeypatch.setattr(pretrain, "show_expected_time", lambda *_: None)
    monkeypatch.setattr(pretrain, "_train", compose)
    lines = {line for entry in ENTRIES if entry.name in ENTRIES_OF_ROWS for line in entry.commands if line in LINES}
    for line in sorted(lines - {line for line in lines if "interclr_moco " in line}):  # no row of a table
        assert main(line.split()[1:]) == 0, line
    assert rows == ROWS


@pytest.mark.slow
def test_every_pretraining_at_the_papers_scale_takes_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word in sorted({word for line in LINES for word in line.split() if "#" in word}):
        images(tmp_path / word.replace("#", "/"))
    for line in LINES:
        if "--learned" in line:
            write_unlearned_views(Path(line.partition("--learned ")[2].split()[0]))
    images(tmp_path / "large", side=448)  # two patches of 64 pixels that are 384 pixels apart need them
    few, large = open_source(tmp_path / "IMAGENET" / "train"), open_source(tmp_path / "large")
    monkeypatch.setattr(type(few), "image", cache(type(few).image))  # every run looks at each four times
    monkeypatch.setattr(pretrain, "look_at", lambda *_, **__: (Repeated(few), ""))
    monkeypatch.setattr(pretrain, "show_expected_time", lambda *_: None)
    monkeypatch.setattr(pretrain, "_train", one_step_training(few, large))
    fits = warm_parts.check_backbones  # of what was trained here, which is narrow
    monkeypatch.setattr(warm_parts, "check_backbones", lambda start, run: fits(start, narrowed(run)))
    for line in {training_of(line): line for line in LINES}.values():
        assert main(line.split()[1:]) == 0, line


@pytest.mark.slow
def test_the_ends_of_every_sweep_at_the_papers_scale_take_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images(tmp_path / "few")
    few = open_source(tmp_path / "few")
    step, points, sweep = one_step_training(few, few), dict[str, int](), import_module("vantage.cli.analyse.sweep")

    def both_ends(study: Study, source: Source, test: Source, out: Path, *_: object) -> int:
        first, *_, last = study.sweep.points(study.base)
        assert len(source) == MANY and first.run.batch_size == PER_STEP[out.name]
        points[out.name] = sum(not step(point.run, tmp_path / out / point.label) for point in (first, last))
        return 0

    monkeypatch.setattr(sweep, "_open", lambda *_: (Repeated(few), Data("few")))
    monkeypatch.setattr(sweep, "_test", lambda *_: few)
    monkeypatch.setattr(sweep, "_run", both_ends)
    for line in dict.fromkeys(line for entry in ENTRIES for line in entry.commands if " analyse views " in line):
        assert main(line.split()[1:]) == 0, line
    assert points == dict.fromkeys(PER_STEP, 2)


def training_of(line: str) -> str:
    """A line without what only names images, folders and random numbers, says the images' statistics, or makes no
    difference to a single step."""
    rest = re.sub(r" (--(data|out|seed|epochs) |--set (mean|std)=)\S+", "", line)
    return re.sub(r" --(init|learned) \S+", r" --\1", rest)


def folder_of(line: str, option: str) -> str:
    """The folder that an option of a line names; empty if it has none."""
    return f"{line} ".partition(f" {option} ")[2].partition(" ")[0]


def test_what_a_command_needs_is_made_by_an_earlier_one_of_its_entry() -> None:
    """Runs may also come from another entry, which the printed lines name; learned views may not."""
    for entry in ENTRIES:
        made: list[str] = []
        own = {folder_of(line, "--out") for line in entry.commands}
        for line in entry.commands:
            runs = {word for word in line.split() if word.startswith("runs/") and word in own}
            needed = (runs | {folder_of(line, "--learned")}) - {folder_of(line, "--out"), ""}
            assert needed <= set(made), f"{entry.name}: {line}"
            made.append(folder_of(line, "--out"))


def judged_on(entry: str, images: str) -> list[str]:
    """The runs that the commands of an entry judge on some test images."""
    commands = entry_of(entry).commands
    lines = (line for line in commands if " evaluate " in line and f" --test {images}" in line)
    return [line.split()[3].removeprefix("runs/") for line in lines]


def test_commands_fill_every_column_of_a_table() -> None:
    sets = {"CIFAR10#test": "", "CIFAR100#test": "_cifar100", "STL10#test": "_stl10", "IMAGENET#val": "_imagenet"}
    for images, name in sets.items():
        rows = ("ring_ir", "cnce_ir", "ring_moco", "cnce_moco", "ring_cmc", "cnce_cmc", "cnce_la")
        assert judged_on("cnce-table-1", images) == [f"{row}{name}" for row in rows]
    lesions = ("cnce_ir", "ring_ir", "ring_ir_unannealed", "ball_ir")
    assert judged_on("cnce-table-2", "IMAGENET#val") == [f"{row}_imagenet" for row in lesions]
    detectors = (judged_on("cnce-table-4", f"COCO/annotations/{kind}") for kind in ("instances", "person_keypoints"))
    assert [len(runs) for runs in (*detectors, judged_on("cnce-table-4", "VOC2007#test"))] == [5, 5, 5]


def test_networks_are_judged_on_learned_views() -> None:
    rows = [f"{space}_{way}" for space in ("RGB", "YDbDr") for way in ("unsupervised", "supervised", "semi_supervised")]
    rows += ["RGB_raw", "YDbDr_raw"]
    seeds = ("", "_seed_1", "_seed_2")
    assert sorted(judged_on("infomin-table-5", "STL10#test")) == sorted(row + seed for row in rows for seed in seeds)
    of_7 = judged_on("infomin-figure-7", "STL10#test")
    assert {run for run in of_7 if "nvp" in run} and set(judged_on("infomin-table-5", "STL10#test")) & set(of_7)
    larger = {f"{space}_{views}_{n}" for space in ("RGB", "YDbDr") for views in ("raw", "semi_supervised")
        for n in ("resnet18", "resnet50", "resnet50x2")}  # fmt: skip
    assert set(judged_on("infomin-figure-8", "STL10#test")) == larger


SHORT = {
    "learn": "--epochs 1 --network convolutions --set batch_size=4 --set labeled_batch_size=4",
    "pretrain": "--epochs 1",
}
"""What makes the commands of learned views last seconds."""


@pytest.mark.slow
@pytest.mark.usefixtures("short_looks")
def test_views_are_learned_trained_on_and_judged_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, part in enumerate(("train", "unlabeled", "train+unlabeled", "test")):
        images(tmp_path / "STL10" / part, seed)
    lines = entry_of("infomin-table-5").commands
    rgb = [line for line in lines if "YDbDr" not in line and "seed" not in line]
    assert len(rgb) == 3 * 3 + 2
    for line in rgb:
        words = line.replace("tiny_alexnet", "convolutions").replace("--epochs 100", "--epochs 1").split()[1:]
        more = next((more for name, more in SHORT.items() if name in words), "")
        assert main([*words, *more.split()]) == 0, line
    assert len(list(tmp_path.glob("runs/RGB_*/evaluations/*.json"))) == 4
