"""Learned views as a color space: read from a file that is what its digest says, kept beside every run."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import TinyBackbone
from torch import Tensor
from torch.testing import assert_close

from vantage.cli import main
from vantage.composition.codec import allowing
from vantage.encoders import Convolutions, Encoder, LinearHead, PerView
from vantage.errors import UserError
from vantage.frozen.encoder import random_encoder
from vantage.recipes import cmc, moco_v2
from vantage.training.backbone import evaluation_view
from vantage.training.folder import settings
from vantage.training.folder.same_run import refuse_conflicts
from vantage.training.run import Run
from vantage.views import Flow, InSpace, LearnedSpace, Normalize, RealNVP, Statistics, YDbDr, in_space, learned_space
from vantage.views.colors.flows import FlowNetwork
from vantage.views.colors.learned import BEST, LAST, write_learned

STATISTICS = Statistics((0.1, -0.2, 0.3), (0.9, 1.1, 1.3))


def network(flow: Flow) -> FlowNetwork:
    """One that does something."""
    torch.manual_seed(4)
    network = flow.build()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


@pytest.fixture
def space(tmp_path: Path) -> LearnedSpace:
    flow = Flow(RealNVP(4, 2), 3)
    return write_learned(tmp_path / LAST, flow, network(flow), YDbDr(), STATISTICS)


def images() -> Tensor:
    return torch.rand(3, 3, 6, 6, generator=torch.Generator().manual_seed(0))


def run_on(space: LearnedSpace) -> Run:
    """CMC of two tiny networks on these channels."""
    run = cmc(32)
    tiny = PerView(tuple(Encoder(TinyBackbone(4, channels), LinearHead(8)) for channels in (1, 2)))
    return replace(run, encoders=tiny, views=in_space(run.views, space))


def operations(run: Run) -> tuple[object, ...]:
    return run.views.view.operations  # pyright: ignore


def test_its_channels_are_those_of_the_flow_on_the_normalized_space(space: LearnedSpace) -> None:
    normalized_pixels = YDbDr().statistics.normalize().apply(YDbDr().convert(images()), torch.empty(3, 0))
    assert_close(
        space.convert(images()), network(Flow(RealNVP(4, 2), 3))(normalized_pixels)[0].detach(), rtol=0, atol=0
    )
    assert space.statistics == STATISTICS
    assert not space.convert(images().requires_grad_()).requires_grad
    assert space.convert(images().double()).dtype == torch.float64


def test_a_folder_means_its_best_state_and_a_file_itself(space: LearnedSpace, tmp_path: Path) -> None:
    assert learned_space(tmp_path) == learned_space(tmp_path / LAST) == space  # there is no best one yet
    other = write_learned(tmp_path / BEST, Flow(couplings=2), Flow(couplings=2).build(), YDbDr(), STATISTICS)
    assert learned_space(tmp_path / LAST) == space
    assert learned_space(tmp_path) == learned_space(tmp_path / BEST) == other != space
    for path in (tmp_path / "nowhere", tmp_path.parent):
        with pytest.raises(UserError, match="vantage views learn"):
            learned_space(path)


def test_an_altered_or_missing_file_is_refused(space: LearnedSpace) -> None:
    file = Path(space.file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UserError, match=f"its SHA-256 begins with .{{12}}, not {space.digest[:12]}"):
        space.convert(images())
    file.unlink()
    with pytest.raises(UserError, match="are missing: put the file back"):
        space.convert(images())


def test_files_without_learned_views_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"no tensors at all"):
        (tmp_path / "x.safetensors").write_bytes(content)
        with pytest.raises(UserError, match="holds no learned views"):
            learned_space(tmp_path / "x.safetensors")


def test_the_views_of_a_recipe_move_into_it_with_its_statistics(space: LearnedSpace) -> None:
    parts = operations(run_on(space))
    assert [part for part in parts if isinstance(part, InSpace | Normalize)] == [
        InSpace(space),
        STATISTICS.normalize(),
    ]
    assert len(parts) == len(operations(cmc(32)))
    with pytest.raises(UserError, match="no color space"):
        in_space(moco_v2(32).views, space)


def test_a_run_contrasts_the_channels_that_were_learned_with_each_other(tmp_path: Path) -> None:
    flow, channels = Flow(RealNVP(4, 2), 3), ((1,), (0, 2))
    space = write_learned(tmp_path / LAST, flow, network(flow), YDbDr(), STATISTICS, channels)
    assert space.channels == learned_space(tmp_path).channels == channels
    views = in_space(cmc(32).views, space)
    assert views.channels == channels and views.evaluation(1).channels == (0, 2)
    own = replace(cmc(32).views, channels=((2,), (0, 1)))
    assert in_space(own, space).channels == own.channels, "channels that views were given stay"


def test_a_run_keeps_a_copy_beside_its_settings(space: LearnedSpace, tmp_path: Path) -> None:
    """Where the first file went does not matter afterwards; an altered copy is refused."""
    run, folder = run_on(space), tmp_path / "run"
    with allowing("tiny"):
        settings.write(run, folder)
        Path(space.file).unlink()
        copy = settings.read(folder)
        assert copy == run
        refuse_conflicts(run, copy)
        (space,) = (part.space for part in operations(copy) if isinstance(part, InSpace))
        assert isinstance(space, LearnedSpace) and Path(space.file).parent == folder
        assert space.convert(images()).shape == (3, 3, 6, 6)
        new_folder = folder.rename(tmp_path / "moved")
        (space,) = (part.space for part in operations(settings.read(new_folder)) if isinstance(part, InSpace))
        assert isinstance(space, LearnedSpace)
        view = evaluation_view(settings.read(new_folder))
        assert repr(view) == repr(evaluation_view(run)), "features and results are kept under it, wherever the run is"
        Path(space.file).write_bytes(b"other")
        (space,) = (part.space for part in operations(settings.read(new_folder)) if isinstance(part, InSpace))
        with pytest.raises(UserError, match="is not the right file of learned views"):
            space.convert(images())


def test_a_run_on_a_missing_file_is_refused_before_it_begins(space: LearnedSpace, tmp_path: Path) -> None:
    run = run_on(replace(space, file=str(tmp_path / "gone.safetensors"), digest="0" * 64))
    with allowing("tiny"), pytest.raises(UserError, match="are missing"):
        settings.write(run, tmp_path / "run")
    assert not (tmp_path / "run" / settings.FILE).exists()


def test_evaluations_see_the_same_channels(space: LearnedSpace) -> None:
    run = run_on(space)
    view = evaluation_view(run)
    assert (view.space, view.statistics, view.channels) == (space, STATISTICS, (0, 1, 2))
    pixels = (torch.rand(2, 3, 32, 32) * 255).byte()
    expected = STATISTICS.normalize().apply(space.convert(pixels / 255), torch.empty(2, 0))
    assert_close(view.batch(pixels), expected, rtol=0, atol=1e-5)
    assert random_encoder(run).backbone(view.batch(pixels)).shape == (2, 8)


# The command line


@pytest.fixture
def images_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    import numpy as np

    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    chance = np.random.default_rng(0)
    pixels = chance.integers(0, 255, (40, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(40) % 2)
    return str(tmp_path / "images.npz")


@pytest.mark.slow
def test_learning_showing_and_training_on_the_command_line(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "learned"
    words = f"views learn semi-supervised --data {images_path} --out {out} --epochs 1 --size 8 --network convolutions"
    words += " --set batch-size=16 --set labeled-batch-size=8 --set flow.couplings=3 --set coupling.hidden=4"
    words += " --set device=cpu"
    words += " --coupling real-nvp --turns together --colors YDbDr --set learning_rates.generator=1e-3"
    words += " --set terms.0.critics.0.backbone.widths=4,8"
    assert main(words.split()) == 0
    output = capsys.readouterr()
    assert output.out.strip() == str(out / BEST)
    assert f"the best state on held-out images is in {out / BEST}." in output.err
    assert re.search(
        r"epoch 1: .*I_NCE -?[\d.]+ .*; objective on held-out images -?[\d.]+, the best so far", output.err
    )
    assert f"vantage pretrain cmc --data IMAGES --learned {out}\n" in " ".join(output.err.split(" "))
    assert main(words.split()) == 0
    assert "all steps are taken already" in capsys.readouterr().err

    picture = tmp_path / "views.png"
    assert main(f"views show cmc --learned {out} --data {images_path} --out {picture} --images 2".split()) == 0
    assert picture.stat().st_size > 1000

    runs: list[Run] = []

    def train(run: Run, folder: Path, progress: object, init: object) -> object:
        runs.append(run)
        raise UserError("far enough")

    monkeypatch.setattr("vantage.training.loop.train", train)
    assert main(f"pretrain cmc --learned {out} --data {images_path} --out {tmp_path / 'run'}".split()) == 2
    (space,) = (part.space for part in operations(runs[0]) if isinstance(part, InSpace))
    assert isinstance(space, LearnedSpace) and space == learned_space(out / BEST) and space.file == str(out / BEST)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("views learn", "views learn needs METHOD: unsupervised, supervised or semi_supervised"),
        ("views learn semisupervised --data x --out y", "did you mean semi_supervised?"),
        ("views lern", "did you mean views learn?"),
        ("views learn supervised --data nowhere --out y", "does not exist"),
        ("views learn supervised --out y", "needs --data"),
        ("views learn supervised --data x --out y --label 5", "did you mean --set labels=5?"),
        ("views learn supervised --data x", "needs --out"),
        ("views learn unsupervised --data x --out y --coupling glow", "volume-preserving"),
        ("pretrain cmc --learned nowhere --data x --out y", "nowhere does not exist"),
        ("pretrain cmc", "needs --data"),
        ("views show cmc --data x --learned", "--learned: expected text, found nothing"),
    ],
)
def test_mistakes_are_reported(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


def test_help_lists_the_methods_and_their_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["views", "learn", "--help"]) == 0
    assert "semi_supervised" in capsys.readouterr().out


def test_four_convolutions_are_a_backbone() -> None:
    network = Convolutions((4, 6), in_channels=2).build()
    assert network(torch.rand(2, 2, 9, 9)).shape == (2, network.width) == (2, 6)
