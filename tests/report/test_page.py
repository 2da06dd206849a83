"""Pages about small runs: everything is there, nothing hostile runs, nothing is loaded, bad input leaves no file."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torchvision
from known_curves import curve
from runs_with_metrics import HOSTILE, finished_run, hostile_images, record_result
from safetensors.torch import save_file
from small_runs import IMAGES, small_run, write_images
from tiny import cpu_work, tiny_run

import vantage
from vantage.cli import main
from vantage.data import Source, open_source
from vantage.errors import UserError
from vantage.report import write_report
from vantage.report.write import MOST_BYTES, sample_of
from vantage.training.run import Run

SECTIONS = ("curves", "views", "neighbors", "map", "spectrum", "duplicates", "outliers", "results", "origin")


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def tiny(seed: int = 0) -> Run:
    return replace(tiny_run(), epochs=20, seed=seed)


def write(tmp_path: Path, *folders: Path, source: Source, images: int = 100) -> Page:
    out = tmp_path / "report.html"
    write_report(folders, source, out, images=images, work=cpu_work(tmp_path))
    assert out.stat().st_size < MOST_BYTES
    return Page(out)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    folder = tmp_path_factory.mktemp("hostile")
    return folder / "images", hostile_images(folder / "images")


def test_a_page_has_every_section_and_hostile_names_are_text(hostile: tuple[Path, Source], tmp_path: Path) -> None:
    _, source = hostile
    run = finished_run(tmp_path / "<script>run", tiny(), source)
    record_result(run, 50.0)
    record_result(run, 50.0, random_encoder=60.0)
    page = write(tmp_path, run, source=source)
    assert [one.get("id") for one in page.all("section")] == list(SECTIONS)
    assert "Under-trained:" in page.text and "a baseline is as good as the run in knn, top-1 on 5,000 " in page.text
    assert "60.00" in page.text and "<script>run" in page.text and "vantage pretrain <script>" in page.text
    assert "folder" in [one.get("value") for one in page.all("option")], "the images are in several folders"
    alternatives = [one.get("alt") for one in page.all("img")]
    assert any(name and name.startswith(f"{HOSTILE[0]}/{HOSTILE[1]}") for name in alternatives)
    assert any(name and HOSTILE[3] in name for name in alternatives) and "49" not in "".join(map(str, alternatives))
    assert not [one for _, attributes in page.tags for one in attributes if one.startswith("on")]


def test_a_page_loads_nothing(hostile: tuple[Path, Source], tmp_path: Path) -> None:
    _, source = hostile
    page = write(tmp_path, finished_run(tmp_path / "run", tiny(), source), source=source)
    for _, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))
    assert not page.all("link") and "url(" not in (tmp_path / "report.html").read_text()
    (policy,) = (one for one in page.all("meta") if one.get("http-equiv"))
    assert (policy.get("content") or "").startswith("default-src 'none'; img-src data:;")


def test_several_runs_stand_side_by_side(hostile: tuple[Path, Source], tmp_path: Path) -> None:
    _, source = hostile
    one = finished_run(tmp_path / "one", tiny(), source)
    two = finished_run(tmp_path / "two", tiny(1), source, curve(20, deviation=0.01))
    page = write(tmp_path, one, two, source=source, images=10)
    assert "Healthy:" in page.text and "Collapsed:" in page.text and "10 of 24 images" in page.text
    lines = [name for group in page.all("g") if "run-1" in (name := group.get("class") or "")]
    assert len(lines) >= 7
    same_name = finished_run(tmp_path / "other" / "one", tiny(1), source)
    assert str(same_name) in write(tmp_path, one, same_name, source=source).text


@pytest.mark.slow
def test_weights_from_elsewhere_have_a_page_beside_a_run(hostile: tuple[Path, Source], tmp_path: Path) -> None:
    _, source = hostile
    run, other = finished_run(tmp_path / "run", tiny(), source), tmp_path / "other"
    other.mkdir()
    for folder in (tmp_path, other):
        save_file(torchvision.models.resnet18(weights=None).state_dict(), folder / "resnet18.safetensors")
    weights = Path(f"torchvision:resnet18={tmp_path / 'resnet18.safetensors'}")
    record_result((tmp_path / "resnet18").mkdir() or tmp_path / "resnet18", 50.0, raw_pixels=40.0)
    text = " ".join(write(tmp_path, weights, run, source=source).text.split())
    assert "No verdict: these weights come from elsewhere" in text and "Healthy:" in text and "40.00" in text
    assert "torchvision:resnet18 (resnet18.safetensors)" in text and "not trained by Vantage" in text
    alone = write(tmp_path, weights, Path(f"torchvision:resnet18={other / 'resnet18.safetensors'}"), source=source).text
    assert str(weights) in alone and "without curves" in alone and "No epoch is finished" not in alone
    with pytest.raises(UserError, match="named twice"):
        write(tmp_path, weights, weights, source=source)


def test_an_unlabeled_set_and_a_run_that_just_began(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", images=np.random.default_rng(0).integers(0, 255, (9, 16, 16, 3), np.uint8))
    source = open_source(tmp_path / "images.npz")
    run = finished_run(tmp_path / "run", tiny(), source, [])
    page = write(tmp_path, run, source=source)
    assert "No verdict:" in page.text and "✓ " not in page.text.replace("marked ✓", "")
    (run / "provenance.json").unlink()
    for file in (run / "checkpoint").rglob("*.json"):
        file.unlink()
    assert "holds no checkpoint yet" in write(tmp_path, run, source=source).text


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(recipe.__name__, marks=() if recipe.__name__ in ("cmc", "interclr") else pytest.mark.slow)
        for recipe in vantage.RECIPES
    ],
)
def test_every_recipe_has_a_page(recipe: str, tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    source = open_source(path)
    run = finished_run(tmp_path / "run", small_run(recipe, path), source)
    page = write(tmp_path, run, source=source)
    assert page.all("section") and "holds no checkpoint" not in page.text
    assert all(one in [section.get("id") for section in page.all("section")] for one in SECTIONS)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "report needs RUN"),
        (["{run}", "--images", "1"], "1 image for 1 run"),
        (["{run}", "--images", "50001"], "give from 2 to 50,000"),
        (["{run}", "{run}"], "named twice"),
        (["{run}", "nowhere"], "nowhere holds no run"),
        (["{run}", "torchvision:resnet18=nowhere.safetensors"], "nowhere.safetensors"),
        (["{run}", "--out", "page.png"], "end the name with .html"),
        (["{run}", "--network", "3"], "network 3 was asked for"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: list[str],
    problem: str,
    hostile: tuple[Path, Source],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    images, source = hostile
    run = finished_run(tmp_path / "run", tiny(), source)
    words = [word.format(run=run) for word in words]
    assert main(["--import", "tiny", "--quiet", "report", *words, "--data", str(images)]) == 2
    error = capsys.readouterr().err
    assert problem in error and error.count("\n") == 1
    assert not list(tmp_path.glob("*.html")) and not list(tmp_path.glob("*.png"))


def test_a_damaged_checkpoint_is_refused_before_anything_is_written(
    hostile: tuple[Path, Source], tmp_path: Path
) -> None:
    _, source = hostile
    run = finished_run(tmp_path / "run", tiny(), source)
    (tensors,) = run.rglob("tensors.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with pytest.raises(UserError, match="damaged"):
        write(tmp_path, run, source=source)
    assert not (tmp_path / "report.html").exists()


def test_a_sample_is_drawn_from_everywhere_and_always_the_same() -> None:
    assert sample_of(5, 10).tolist() == list(range(5))
    numbers = sample_of(1000, 100)
    assert numbers.tolist() == sorted(set(numbers.tolist())) == sample_of(1000, 100).tolist() and len(numbers) == 100
    assert int(numbers[0]) < 100 and int(numbers[-1]) >= 900


def test_a_page_of_a_recipe_counts_the_images_it_names(tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    source = open_source(path)
    page = write(tmp_path, finished_run(tmp_path / "run", small_run("simclr", path), source), source=source)
    assert f"all {IMAGES} images" in " ".join(page.text.split())
