"""A run on images that come from an object of the user's own."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from jaxtyping import UInt8
from small_runs import IMAGES, SIZE, small_run, write_images
from torch import Tensor

from vantage.composition.codec import allowing
from vantage.data import BatchOrder, check_source, loading, open_source
from vantage.errors import DataError, UnreadableImage, UserError
from vantage.training.folder import checkpoint
from vantage.training.folder.kept_epochs import kept_epochs
from vantage.training.images import open_images
from vantage.training.loop import resume, train
from vantage.training.run import Data, Run


class Squares:
    """What a user might write: no base class of ours, images computed as they are needed."""

    classes = ("dark", "bright")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __len__(self) -> int:
        return IMAGES

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        generator = torch.Generator().manual_seed(1000 * self.seed + number)
        pixels = torch.randint(0, 128, (3, SIZE, SIZE), generator=generator, dtype=torch.uint8)
        return pixels + 127 * (number % 2)

    def label(self, number: int) -> int:
        return number % 2

    def name(self, number: int) -> str:
        return f"square {number}"

    def fingerprint(self) -> str:
        return f"squares {self.seed}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def own_run(**data: int) -> Run:
    return replace(small_run("moco_v2", "", epochs=2), data=Data(**data))  # pyright: ignore[reportArgumentType]


def state(folder: Path) -> dict[str, Tensor]:
    newest = checkpoint.latest(folder)
    assert newest is not None
    return checkpoint.load(newest)[0]


@pytest.mark.slow
@pytest.mark.parametrize("data", [{}, {"resident_bytes": 0, "num_workers": 2}], ids=["resident", "streamed"])
def test_it_trains_and_resumes(data: dict[str, int], tmp_path: Path) -> None:
    run, folder = own_run(**data), tmp_path / "run"
    outcome = train(run, folder, source=Squares())
    assert outcome.finished and outcome.step == 2 * (IMAGES // 8)
    (record,) = json.loads((folder / "provenance.json").read_text())
    assert record["data"] == {"fingerprint": "squares 0", "images": IMAGES}
    whole = state(folder)
    assert len(checkpoint.complete_checkpoints(folder)) == 2
    newest = checkpoint.latest(folder)
    assert newest is not None
    (newest / "facts.json").unlink()  # back to the checkpoint before
    with allowing("tiny"):
        assert resume(folder, source=Squares()).finished
    again = state(folder)
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)


def test_it_takes_the_place_of_the_path(tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    images, line = open_images(Data(path, max_images=6), source=Squares())
    assert images.name(0).startswith("square") and line.endswith("; 6 of them are trained on")


def test_resuming_checks_that_the_images_are_the_same(tmp_path: Path) -> None:
    train(own_run(), tmp_path / "run", source=Squares())
    with allowing("tiny"), pytest.raises(UserError, match="give the same images again"):
        resume(tmp_path / "run", source=Squares(1))


def test_a_finished_run_needs_its_images_no_more(tmp_path: Path) -> None:
    run, folder = own_run(), tmp_path / "run"
    run = replace(run, monitoring=replace(run.monitoring, keep_every=2))
    outcome = train(run, folder, source=Squares())
    shutil.rmtree(folder / "epochs")  # as if the process had been killed after its last checkpoint
    before = len(json.loads((folder / "provenance.json").read_text()))
    with allowing("tiny"):
        assert resume(folder) == resume(folder, run) == outcome and outcome.finished
        assert list(kept_epochs(folder)) == [2]
        assert len(json.loads((folder / "provenance.json").read_text())) == before
        with pytest.raises(UserError, match="seed is 0 in the run, 1 was asked for"):
            resume(folder, replace(run, seed=1))
        newest = checkpoint.latest(folder)
        assert newest is not None
        tensors = (newest / "tensors.safetensors").read_bytes()
        (newest / "tensors.safetensors").write_bytes(tensors[:-1] + bytes([tensors[-1] ^ 1]))
        with pytest.raises(UserError, match="tensors.safetensors has been altered"):
            resume(folder)


@pytest.mark.parametrize("lost", ["checkpoint/step-000000012/facts.json", "provenance.json"])
def test_a_run_that_may_have_steps_left_needs_them(lost: str, tmp_path: Path) -> None:
    train(own_run(), tmp_path / "run", source=Squares())
    (tmp_path / "run" / lost).unlink()
    with allowing("tiny"), pytest.raises(UserError, match="no images were named: .*or `source` from Python"):
        resume(tmp_path / "run")


class Partial:
    """Too little to be a source."""

    classes = ()

    def __len__(self) -> int:
        return 3


class OfType(Squares):
    """Images of a type of one's choice."""

    def __init__(self, image: object) -> None:
        super().__init__()
        self.given = image

    def image(self, number: int):  # noqa: ANN201
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def test_what_is_no_source_is_refused_by_what_it_lacks() -> None:
    with pytest.raises(DataError, match="Partial cannot be used as a source: it has no image, label, name, finger"):
        check_source(Partial())
    with pytest.raises(DataError, match=r"OfType.image gives torch.float32 of shape \(3, 8, 8\): give a uint8 tensor"):
        check_source(OfType(torch.zeros(3, 8, 8)))
    with pytest.raises(DataError, match=r"torch.uint8 of shape \(8, 8, 3\)"):
        check_source(OfType(torch.zeros(8, 8, 3, dtype=torch.uint8)))
    with pytest.raises(DataError, match="OfType.image gives str"):
        check_source(OfType("1.jpg"))
    for fine in (Squares(), OfType(UnreadableImage("1.jpg", "damaged")), open_source("photographs:test")):
        assert check_source(fine) is fine


def test_one_that_cannot_be_sent_to_workers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Squares()
    source.file = lambda: None  # pyright: ignore[reportAttributeAccessIssue]
    views = small_run("moco_v2", "").views
    loading.StreamedImages(source, views, BatchOrder(8), num_workers=2)  # forked workers have it already
    monkeypatch.setattr(loading, "get_start_method", lambda: "spawn")
    loading.StreamedImages(source, views, BatchOrder(8), num_workers=0)
    loading.StreamedImages(Squares(), views, BatchOrder(8), num_workers=2)
    with pytest.raises(DataError, match="Squares cannot be sent to the processes that decode .*make it picklable"):
        loading.StreamedImages(source, views, BatchOrder(8), num_workers=2)


def test_a_source_is_named_by_its_module_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with allowing(__name__):
        assert open_source(f"{__name__}:Squares").fingerprint() == "squares 0"
        assert open_source(f"{__name__}:Squares:7").fingerprint() == "squares 7"
        with pytest.raises(UserError, match="gives no source of images: it needs the methods"):
            open_source(f"{__name__}:own_run")
        with pytest.raises(UserError, match=f"there is no {__name__}:Circles here"):
            open_source(f"{__name__}:Circles")
    with pytest.raises(UserError, match=f"allow it by name .--import {__name__}"):
        open_source(f"{__name__}:Squares")
    with pytest.raises(DataError, match="photographs:trian does not exist"):
        open_source("photographs:trian")
