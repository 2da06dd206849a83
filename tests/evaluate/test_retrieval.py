"""Retrieval: against a full sort of all cosines, and a picture in which right and wrong differ without color too."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tiny import cpu_work, images, tiny_run

from vantage.data.sources.arrays import Arrays
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import split
from vantage.errors import UserError
from vantage.evaluate import EvaluationProtocol, Retrieval, neighbors
from vantage.evaluate.protocols.neighbors.picture import retrieval_picture, rows_of
from vantage.evaluate.protocols.neighbors.retrieval import NearestRows
from vantage.frozen.encoder import random_encoder
from vantage.frozen.features import embed


def unlabeled(count: int, seed: int) -> Arrays:
    pixels = np.random.default_rng(seed).integers(0, 255, (count, 32, 32, 3), dtype=np.uint8)
    return Arrays(pixels, None, f"unlabeled {seed}")


def test_neighbors_and_precision_are_those_of_a_full_sort(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(70, 0), images(31, 1)
    bank = embed(encoder, train, cpu_work(tmp_path)).vector.double().numpy()
    query = embed(encoder, test, cpu_work(tmp_path)).vector.double().numpy()
    neighbor_rows = neighbors(encoder, train, test, 7, cpu_work(tmp_path))
    each = []
    for row in range(31):
        cosine = [
            float(query[row] @ bank[other] / np.linalg.norm(query[row]) / np.linalg.norm(bank[other]))
            for other in range(70)
        ]
        order = sorted(range(70), key=lambda other: -cosine[other])[:7]
        assert neighbor_rows.number[row].tolist() == order
        assert neighbor_rows.cosine[row].tolist() == pytest.approx([cosine[other] for other in order], abs=1e-5)
        each.append([other % 3 == row % 3 for other in order])
    assert neighbor_rows.right is not None and neighbor_rows.right.tolist() == each
    outcome = Retrieval(7)(encoder, train, test, cpu_work(tmp_path))
    share = np.array(each)
    assert outcome.measures == pytest.approx(
        {"precision at 7": 100 * share.mean(), "precision at 1": 100 * share[:, 0].mean()}
    )
    by_class = outcome.details["precision at 7 by class"]
    assert by_class == pytest.approx({name: 100 * share[number::3].mean() for number, name in enumerate(by_class)})
    assert (outcome.train_images, outcome.test_images) == (70, 31)
    assert isinstance(Retrieval(), EvaluationProtocol)


def test_one_neighbor_is_reported_once(tmp_path: Path) -> None:
    outcome = Retrieval(1)(random_encoder(tiny_run()), images(20, 0), images(9, 1), cpu_work(tmp_path))
    assert list(outcome.measures) == ["precision at 1"]


def test_images_without_labels_are_looked_up_but_not_scored(tmp_path: Path) -> None:
    encoder = random_encoder(tiny_run())
    bank, query = split(unlabeled(40, 0))
    assert (len(bank), len(query)) == (32, 8)
    assert {bank.name(n) for n in range(32)} | {query.name(n) for n in range(8)} == {
        unlabeled(40, 0).name(n) for n in range(40)
    }
    assert neighbors(encoder, bank, query, 3, cpu_work(tmp_path)).right is None
    assert neighbors(encoder, images(12, 0), query, 3, cpu_work(tmp_path)).right is None
    with pytest.raises(UserError, match="needs labels"):
        Retrieval(3)(encoder, bank, query, cpu_work(tmp_path))


def test_impossible_searches_are_refused(tmp_path: Path) -> None:
    encoder = random_encoder(tiny_run())
    for count, words in ((6, "6 images"), (1, "1 image")):
        with pytest.raises(UserError, match=f"k is 10, but only {words} can be searched; choose a smaller k \\(--k\\)"):
            neighbors(encoder, images(count, 0), images(3, 1), 10, cpu_work(tmp_path))
    with pytest.raises(UserError, match="no image to look up"):
        neighbors(encoder, images(6, 0), SourceSubset(images(6, 1), []), 2, cpu_work(tmp_path))
    with pytest.raises(UserError, match="k is 0"):
        Retrieval(0)
    with pytest.raises(UserError, match="give --rows 1 or more"):
        rows_of(images(6, 0), 0)
    with pytest.raises(UserError, match="of one class"):
        Retrieval(2)(encoder, images(6, 0, classes=1), images(6, 1), cpu_work(tmp_path))
    neighbor_rows = NearestRows(torch.zeros(6, 2, dtype=torch.int64), torch.ones(6, 2), None)
    with pytest.raises(UserError, match="must be between 16 and 1024"):
        retrieval_picture(neighbor_rows, images(6, 0), images(6, 1), [0], side=8)


def cells(picture: Image.Image, side: int, row: int, column: int) -> np.ndarray:
    """An image with its frame, cut out of the picture."""
    step, high = side + 10 + 12, side + 10 + 30 + 12
    edge, top = 12 + column * step + (12 if column else 0), 19 + 12 + row * high
    return np.asarray(picture)[top : top + side + 10, edge : edge + side + 10]


def test_right_and_wrong_differ_in_color_frame_and_sign() -> None:
    gray = Arrays(np.full((6, 32, 32, 3), 128, np.uint8), np.arange(6) % 3, "gray")
    right = torch.tensor([[True, False]] * 6)
    neighbor_rows = NearestRows(torch.tensor([[0, 1]] * 6), torch.tensor([[0.9, 0.4]] * 6), right)
    picture = retrieval_picture(neighbor_rows, gray, gray, [0, 3], side=64)
    for row in (0, 1):
        query, good, bad = (cells(picture, 64, row, column).astype(int) for column in range(3))
        assert (query[5:-5, 5:-5] == 128).all() and (query[0] == 255).all()
        assert (good[0] == [0, 128, 60]).all()  # unbroken
        assert (bad[0] == [200, 30, 45]).all(1).any() and (bad[0] == 255).all(1).any()  # broken
        luminance = [cell.sum(2) > 600 for cell in (good, bad)]
        inside = [sign[5:23, -23:-5] for sign in luminance]  # what is white in the corner
        assert inside[0].any() and inside[1].any() and (inside[0] != inside[1]).mean() > 0.05
        assert (good[30:-5, 5:-25] == 128).all() and (bad[30:-5, 5:-25] == 128).all()  # images stay as they are


def test_without_labels_nothing_is_framed() -> None:
    gray = Arrays(np.full((6, 32, 32, 3), 128, np.uint8), None, "gray")
    neighbor_rows = NearestRows(torch.tensor([[0, 1]] * 6), torch.ones(6, 2), None)
    picture = retrieval_picture(neighbor_rows, gray, gray, [0], side=64)
    for column in range(3):
        cell = cells(picture, 64, 0, column)
        assert (cell[5:-5, 5:-5] == 128).all() and (cell[:5] == 255).all()


def test_images_shown_are_spread_over_the_set() -> None:
    assert rows_of(images(30, 0), 4) == [0, 7, 15, 22]
    assert rows_of(images(3, 0), 8) == [0, 1, 2]


def test_long_names_and_a_title_fit(tmp_path: Path) -> None:
    long = images(6, 0)
    neighbor_rows = NearestRows(torch.tensor([[0, 1]] * 6), torch.ones(6, 2), torch.tensor([[True, False]] * 6))
    wide, plain = (retrieval_picture(neighbor_rows, long, long, [0], title) for title in ("a title " * 99, ""))
    assert wide.width == plain.width and wide.height == plain.height + 19
    assert (np.asarray(wide)[:25, -12:] == 255).all()
