"""The map: places, the packed numbers, the sprite and its bounds."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from known_curves import features
from PIL import Image
from runs_with_metrics import HOSTILE, finished_run, hostile_images
from tiny import cpu_work, images, tiny_run

from vantage.measures import layout
from vantage.measures.layout import places
from vantage.report import write
from vantage.report.gallery import image_facts
from vantage.report.layout import stored_places
from vantage.report.map_data import images_data, run_data
from vantage.report.sprite import cells_of, mosaic, sprite_of
from vantage.report.write import write_report


def picture(address: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def test_images_of_a_group_lie_together_and_places_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vector = features()
    position = stored_places(vector, ("a", "b"), tmp_path / "report", 1)
    assert position.shape == (40, 2) and 0 <= float(position.min()) and float(position.max()) <= 1
    gap = torch.cdist(position, position) + 9 * torch.eye(40)
    nearest = gap.argmin(1)
    assert (nearest[:39] // 10 == torch.arange(39) // 10).double().mean() > 0.9
    monkeypatch.setattr(layout, "places", lambda *_: pytest.fail("laid out again"))
    assert torch.equal(stored_places(vector, ("a", "b"), tmp_path / "report", 1), position)
    (file,) = (tmp_path / "report").iterdir()
    file.write_bytes(b"damaged")
    monkeypatch.undo()
    assert torch.equal(stored_places(vector, ("a", "b"), tmp_path / "report", 1), position)  # the same seed
    not_writable = file / "report"  # no folder can be made in a file
    assert torch.equal(stored_places(vector, ("a", "b"), not_writable, 1), position)


@pytest.mark.slow
def test_of_many_images_some_are_laid_out_and_the_others_lie_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    centers = torch.eye(4, 16)
    vector = centers.repeat_interleave(100, 0) + 0.05 * torch.randn(400, 16, generator=torch.Generator().manual_seed(0))
    group = torch.arange(4).repeat_interleave(100)
    monkeypatch.setattr(layout, "MOST_LAID_OUT", 120)
    position = places(vector)
    assert position.shape == (400, 2) and 0 <= float(position.min()) and float(position.max()) <= 1
    gap = torch.cdist(position, position).fill_diagonal_(9)
    assert (group[gap.argmin(1)] == group).double().mean() > 0.97
    some = torch.randperm(400, generator=torch.Generator().manual_seed(0))[:120]
    few = places(vector[some])
    scale = (position[some].amax(0) - position[some].amin(0)) / (few.amax(0) - few.amin(0))
    assert scale[0] == pytest.approx(float(scale[1]), rel=1e-3), "the picture of the few, moved and scaled"
    assert torch.equal(places(vector), position)


def test_the_page_says_how_many_images_were_laid_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = images(30, 0)
    run = finished_run(tmp_path / "run", tiny_run(), source)
    sentence = "20 of them were laid out; each other image lies at the median of its ten nearest of these."
    for most, said in ((20, [sentence]), (30, [])):
        monkeypatch.setattr(layout, "MOST_LAID_OUT", most)
        write_report([run], source, tmp_path / "report.html", work=cpu_work(tmp_path))
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert re.findall(r"[\d,]+ of them were laid out.*?these\.", page) == said


def test_few_images_are_laid_out() -> None:
    assert torch.isfinite(places(features()[::9])).all()


def test_the_script_reads_what_was_measured(tmp_path: Path) -> None:
    source = hostile_images(tmp_path / "images")
    vector = torch.nn.functional.normalize(torch.randn(24, 6), dim=1)
    facts = image_facts(vector, source)
    data = run_data("run", torch.rand(24, 2), facts, None)
    near = unpack(data["near"], "<u2").reshape(24, data["nearest"])
    assert near.tolist() == facts.neighbors.number[:, :8].tolist() and data["cluster"] is None
    cosine = (unpack(data["cosine"], "u1").astype(float) - 100) / 100
    assert cosine == pytest.approx(facts.neighbors.cosine[:, :8].flatten().numpy(), abs=0.006)
    score = unpack(data["score"], "u1")
    assert int(score.argmin()) == int(facts.outliers.score.argmin()) and (score == 255).sum() >= facts.outliers.count
    shared = images_data(source)
    folder = unpack(shared["folder"], "<u2")
    names = [f"{shared['folders'][folder[i]]}/{name}" for i, name in enumerate(shared["names"])]
    assert names == [source.name(number) for number in range(24)] and names[0].startswith(HOSTILE[0])
    assert unpack(shared["label"], "<i4").tolist() == [source.label(number) for number in range(24)]


def test_the_sprite_holds_every_thumbnail_or_fewer(tmp_path: Path) -> None:
    source = images(30, 0, noise=5.0)
    cells = cells_of(source, cpu_work(tmp_path))
    assert cells.step == 1 and cells.pixels.shape == (30, 3, 48, 48)
    sprite = sprite_of(cells, 10**6)
    pixels = np.asarray(picture(sprite.picture).convert("RGB")).astype(float)
    for number in range(30):
        row, column = divmod(number, sprite.columns)
        cell = pixels[48 * row : 48 * row + 48, 48 * column : 48 * column + 48]
        assert cell.mean((0, 1)) == pytest.approx(source.image(number).double().mean((1, 2)).numpy(), abs=6)
    small = sprite_of(cells, len(base64.b64decode(sprite.picture.partition(",")[2])) // 4)
    assert small.step > 1 and picture(small.picture).width < pixels.shape[1]
    assert sprite_of(cells, 0).picture == "" and sprite_of(cells, 0).step == 0
    assert picture(mosaic(cells, torch.rand(30, 2))).size == (720, 720)


@pytest.mark.slow
def test_a_page_that_would_be_too_large_has_fewer_thumbnails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = images(60, 0)
    run = finished_run(tmp_path / "run", tiny_run(), source)

    def size(most: int) -> int:
        monkeypatch.setattr(write, "MOST_BYTES", most)
        write_report([run], source, tmp_path / "report.html", work=cpu_work(tmp_path))
        return (tmp_path / "report.html").stat().st_size

    whole = size(8_000_000)
    assert size(whole) < whole
    with pytest.raises(write.UserError, match="name fewer runs, or fewer images"):
        size(50_000)
    assert (tmp_path / "report.html").stat().st_size < whole
