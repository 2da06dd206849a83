import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import small_run, write_images
from synthetic import vectors
from torch import Tensor

from vantage.data.sources.arrays import Arrays
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import load, random_encoder
from vantage.frozen.networks import untrained_networks
from vantage.recipes import moco_v2
from vantage.records import Keys
from vantage.studies.lab.contracts import Subject
from vantage.studies.lab.measures import vectors as measures
from vantage.studies.lab.measures.each_kept_epoch import EachKeptEpoch
from vantage.studies.lab.measures.vectors import (
    AugmentationSimilarity,
    FalseByBand,
    JointKeys,
    ProtocolAccuracy,
)
from vantage.studies.lab.sets import Split
from vantage.studies.lab.two_cores import base
from vantage.training.loop import train
from vantage.training.run import Monitoring

IMAGES, CLASSES = 40, 4
TAU = 0.2


def subject_of(tmp_path: Path) -> Subject:
    label = np.arange(IMAGES) % CLASSES
    source = Arrays(np.zeros((IMAGES, 8, 8, 3), np.uint8), label, "black")
    run = base(moco_v2(32)).run
    encoder, work = random_encoder(run), Work("cpu", cache=tmp_path)
    split = Split(source, source, source)
    return Subject(encoder, lambda: untrained_networks(run, 8, run.seed), split, 0, work, lambda *_: split)


def with_vectors(monkeypatch: pytest.MonkeyPatch, table: Tensor) -> None:
    monkeypatch.setattr(measures, "augment", lambda *_: table)


def around(images: int, copies: int, deviation: float) -> Tensor:
    """Unit vectors of the copies of each image."""
    centers = vectors(images, 16, 1)[:, None]
    noise = torch.from_numpy(np.random.default_rng(2).normal(0, deviation, (images, copies, 16)))
    return torch.nn.functional.normalize(centers + noise, dim=2)


def test_the_mean_loss_over_gaussian_keys_is_its_monte_carlo(monkeypatch: pytest.MonkeyPatch) -> None:
    key = around(6, 9, 0.2)
    cosine = torch.einsum("nd,nad->na", key[:, 0], key[:, 1:])
    others = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64)
    expected, (tight, wide) = measures._losses(cosine, others, TAU, (1.0, 4.0))
    chance = torch.Generator().manual_seed(0)
    for image in range(6):
        mean, sd = cosine[image].mean(), cosine[image].std(correction=0)
        draws = (mean + sd * torch.randn(200_000, generator=chance, dtype=torch.float64)) / TAU
        losses = torch.logaddexp(draws, others[image]) - draws
        assert float(expected[image]) == pytest.approx(float(losses.mean()), abs=4 * float(losses.std()) / 400)
        by_hand = mean / TAU + sd**2 / (2 * TAU**2)
        assert float(tight[image]) == pytest.approx(math.log(math.exp(by_hand) + math.exp(others[image])) - mean / TAU)
    assert bool((expected <= tight).all()) and bool((tight <= wide).all())


def test_joint_keys_say_what_their_formulas_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    vector = around(30, 33, 0.3)
    with_vectors(monkeypatch, vector)
    numbers = JointKeys(keys=(1, 4, 16), strengths=(0.0, 4.0))(subject_of(tmp_path))
    assert numbers["least gap of the bound"] >= 0.0 and numbers["gap of the bound"] > 0.0
    one, four, many = (numbers[f"error of the mean key, M′ {count}"] for count in (1, 4, 16))
    # drawn without replacement from 32: the variance of the mean is (1 − M′/32)·32/31 of σ²/M′
    assert four / one == pytest.approx(0.5 * ((1 - 4 / 32) / (1 - 1 / 32)) ** 0.5, rel=0.05)
    assert many / one == pytest.approx(0.25 * ((1 - 16 / 32) / (1 - 1 / 32)) ** 0.5, rel=0.07)
    share = numbers["share of the variance seen, M′ 4"]
    assert share == pytest.approx(3 / 4 * 32 / 31, abs=0.02)
    assert numbers["negatives' share, λ 4"] < numbers["negatives' share, λ 0"]


def test_similarity_by_a_slow_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    vector = around(5, 4, 0.3)
    with_vectors(monkeypatch, vector)
    numbers = AugmentationSimilarity(images=5, augmentations=4)(subject_of(tmp_path))
    within = [float(a @ b) for image in vector for i, a in enumerate(image) for j, b in enumerate(image) if i != j]
    with_self = [float(a @ b) for image in vector for a in image for b in image]
    between = [
        float(a @ b) for m, one in enumerate(vector) for n, two in enumerate(vector) if m != n for a in one for b in two
    ]
    assert numbers["similarity"] == pytest.approx(float(np.mean(with_self)))
    assert numbers["within − between"] == pytest.approx(float(np.mean(within) - np.mean(between)))


def test_false_negatives_by_a_slow_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key, query = vectors(IMAGES, 6, 3), vectors(IMAGES, 6, 4)

    def seeded_queries(one: Any, source: Any, image: Tensor, view: int, seed: int, work: Any) -> Keys:
        rows = query[image] if seed == 0 else key[image]
        return Keys(rows, image)

    monkeypatch.setattr(measures, "queries", seeded_queries)
    numbers = FalseByBand(images=12, temperature=0.1, edges=(0.0, 0.25, 1.0))(subject_of(tmp_path))
    ask = measures.draw_numbers(IMAGES, 12, 0).tolist()
    shares, masses = [], []
    for one in ask:
        others = [n for n in range(IMAGES) if n != one]
        cosine = {n: float(query[one] @ key[n]) for n in others}
        nearest = sorted(others, key=lambda n: -cosine[n])[: round(0.25 * len(others))]
        total = sum(math.exp(c / 0.1) for c in cosine.values())
        shares.append(np.mean([n % CLASSES == one % CLASSES for n in nearest]))
        masses.append(sum(math.exp(cosine[n] / 0.1) for n in nearest) / total)
    assert numbers["false negatives, 0 to 25 %"] == pytest.approx(100 * float(np.mean(shares)))
    assert numbers["softmax, 0 to 25 %"] == pytest.approx(100 * float(np.mean(masses)))
    assert numbers["softmax, 0 to 25 %"] + numbers["softmax, 25 to 100 %"] == pytest.approx(100)
    assert numbers["false negatives, all"] == pytest.approx(100 * 9 / 39)


def test_a_measure_by_epoch_is_taken_of_every_kept_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kept epoch is measured with the network it had then; the mean is over the epochs."""
    steps: list[int] = []

    class Step(ProtocolAccuracy):
        def __call__(self, subject: Subject) -> dict[str, float]:
            steps.append(subject.networks().step)
            assert subject.encoder.checkpoint is not None and subject.folder in subject.encoder.checkpoint.parents
            return {"step": float(steps[-1])}

    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"), epochs=4)
    train(replace(run, monitoring=Monitoring(keep_every=2)), tmp_path / "run")
    subject = replace(subject_of(tmp_path), encoder=load(tmp_path / "run"), folder=tmp_path / "run")
    numbers = EachKeptEpoch(Step())(subject)
    assert steps == [steps[0], 2 * steps[0]]
    assert numbers == {"step, epoch 2": steps[0], "step, epoch 4": steps[1], "step, all epochs": sum(steps) / 2}
    with pytest.raises(UserError, match="random encoder kept no epochs: set monitoring.keep_every"):
        EachKeptEpoch()(subject_of(tmp_path))
