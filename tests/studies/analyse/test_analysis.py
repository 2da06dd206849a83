"""A whole analysis: the files, the command line, and mistakes."""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from runs import run_of, work

from vantage.cli import main
from vantage.data import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks, random_networks, trained_networks
from vantage.storage.tables import Row, align
from vantage.studies.analyse.analysis import Analysis, AnalysisResult, analyse, experiment
from vantage.studies.analyse.band import Band
from vantage.studies.analyse.false_negatives import FalseNegatives
from vantage.studies.analyse.gaussian import OptimalToy
from vantage.studies.analyse.held_out import HeldOutInformation
from vantage.studies.analyse.labels import Labels
from vantage.studies.analyse.similarity import Similarity

QUICK, INFORMATION = Similarity(images=6, augmentations=3), HeldOutInformation(images=9, draws=2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("ring_moco", tmp_path_factory.mktemp("moco"), epochs=2)


@pytest.fixture(scope="module")
def clustered_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("interclr", tmp_path_factory.mktemp("interclr"), epochs=2)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


def test_the_whole_learner_is_loaded(run: tuple[Path, Source]) -> None:
    before = torch.get_rng_state()
    one = trained_networks(run[0])
    assert torch.equal(torch.get_rng_state(), before)
    assert (one.name, one.images, one.step, one.steps_per_epoch, one.epochs) == ("ring_moco", 48, 12, 6, 2.0)
    assert int(one.learner.state_dict()["stores.0.oldest"]) == (12 * 8) % len(
        one.learner.state_dict()["stores.0.image"]
    )
    assert not one.learner.training and not any(p.requires_grad for p in one.learner.parameters())
    older = one.before()
    assert older is not None and older.step == 11 and older.before() is None
    runs = (one, older, random_networks(one), random_networks(one, 1))
    weights = [next(each.learner.networks.parameters()) for each in runs]
    assert all(not torch.equal(a, b) for n, a in enumerate(weights) for b in weights[:n])


@pytest.mark.slow
def test_table_and_picture_are_saved_and_replaced(run: tuple[Path, Source], tmp_path: Path) -> None:
    for count in (6, 5):
        outcome = analyse(Similarity(images=count, augmentations=3), [run[0]], run[1], work=work())
        content = json.loads(outcome.table_file.read_text())
        assert content["rows"] == outcome.result.table() and content["settings"]["images"] == count
    assert outcome.table_file == run[0] / "analyses" / "similarity.json"
    assert content["runs"] == [{"name": "ring_moco", "folder": str(run[0]), "step": 12}]
    assert content["images"] == run[1].fingerprint() and "torch" in content["versions"]
    assert outcome.picture_file.read_bytes().startswith(b"\x89PNG")
    shutil.copytree(run[0], tmp_path / "ring_moco")
    folders = [run[0], tmp_path / "ring_moco"]
    findings = analyse(QUICK, folders, run[1], work=work(), out=tmp_path / "out")
    assert [row["encoder"] for row in findings.result.table()[:2]] == list(map(str, folders))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["similarity.json", "similarity.png"]


def test_the_legend_of_a_long_path_leaves_room_for_the_panels(run: tuple[Path, Source], tmp_path: Path) -> None:
    """Runs whose folders share a name are named by their paths; a long one left the panels without any width."""
    folder = tmp_path / "a folder with a name that is rather long" / "and another one below it, as long" / "ring_moco"
    shutil.copytree(run[0], folder)
    findings = analyse(QUICK, [run[0], folder], run[1], work=work(), out=tmp_path / "out")
    figure = findings.result.figure()
    figure.draw_without_rendering()
    first = figure.axes[0]
    assert first.get_position().width > 0.25
    assert str(folder) in {label.get_text().replace("\n", "") for label in first.get_legend().get_texts()}


def test_an_unwritable_folder_is_reported(run: tuple[Path, Source], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="could not be written"):
        analyse(QUICK, [run[0]], run[1], work=work(), out=tmp_path / "file")


def test_rows_stand_in_columns() -> None:
    rows = [{"name": "a", "share_kept": 0.123456, "rows": 12345}, {"name": "long", "share_kept": None, "rows": 1}]
    assert align(rows) == ["name  share kept    rows", "a         0.1235  12,345", "long           –       1"]
    assert align([]) == []


def test_the_command_line_prints_the_table_and_its_file(
    run: tuple[Path, Source], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(run[0].parent / "images.npz"), tmp_path / "out"
    words = ["analyse", "similarity", str(run[0]), str(run[0]), "--data", path, "--out", str(out), "--images", "5"]
    assert main([*words, "--augmentations", "2", "--no-random-encoder", "--import", "tiny"]) == 0
    output = capsys.readouterr()
    rows = [line for line in output.out.splitlines() if line.startswith(str(run[0]))]
    assert len(rows) == 4 and f"saved in {out / 'similarity.json'}" in output.err
    assert json.loads((out / "similarity.json").read_text())["settings"] == {
        "images": 5, "augmentations": 2, "view": 0, "bins": 50, "random_encoder": False, "seed": 0
    }  # fmt: skip


def test_a_toy_needs_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["analyse", "spread-toy", "--out", str(tmp_path), "--pairs", "9", "--draws", "3", "--negatives", "4", "8"]
    assert main([*words, "--pool", "64", "--set", "gaussian.covariance=0.9"]) == 0
    output = capsys.readouterr()
    assert f"saved in {tmp_path / 'spread-toy.json'}" in output.err
    record = json.loads((tmp_path / "spread-toy.json").read_text())
    assert (
        record["settings"]["gaussian"]["covariance"] == 0.9 and len(record["rows"]) == 6 == output.out.count("e-") // 2
    )
    assert matplotlib.image.imread(tmp_path / "spread-toy.png").std() > 0.01


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "needs a kind first"),
        ("spread-toi", "did you mean spread-toy?"),
        ("spread-toy --draws 1", "give at least 2 pairs, 2 draws"),
        ("optimal-toy --repetitions 0", "give at least one of each"),
        ("optimal-toy --seeds 5", "no option --seeds; did you mean --repetitions?"),
        ("similarty RUN --data DATA", "no analysis 'similarty'; did you mean similarity?"),
        ("similarity --data DATA", "needs RUN: folders of the runs"),
        ("similarity RUN", "needs --data"),
        ("similarity RUN --data DATA --image 3", "no option --image; did you mean --images?"),
        ("similarity RUN --data DATA --images 0", "images is 0"),
        ("similarity RUN --data DATA --bins few", "--bins"),
        ("labels RUN --data DATA", "ring_moco keeps no clusters"),
        ("labels RUN --data DATA --images 3", "no option --images"),
        ("band RUN --data DATA --seed x", "--seed"),
        ("false-negatives RUN --data DATA --share 2", "share is 2.0"),
        ("information RUN --data DATA --negatives 48", "needs 49 held-out images or more, found 48"),
        ("similarity RUN nowhere --data DATA", "nowhere holds no run"),
        ("similarity RUN --data nowhere.npz", "nowhere.npz"),
        ("similarity RUN --data DATA --view 7", "view 7 was asked for, but the run makes 2"),
        ("similarity RUN --data DATA --device quantum", "quantum"),
    ],
)
def test_a_mistake_is_reported_in_a_few_lines(
    words: str, message: str, run: tuple[Path, Source], capsys: pytest.CaptureFixture[str]
) -> None:
    words_with_paths = words.replace("RUN", str(run[0])).replace("DATA", str(run[0].parent / "images.npz"))
    assert main(["analyse", *words_with_paths.split(), "--import", "tiny"]) == 2
    output = capsys.readouterr()
    mistake = output.err[output.err.index("vantage: ") :]
    assert message in mistake and len(mistake.splitlines()) <= 4 and "Traceback" not in output.err
    assert output.out == ""


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("similarity --help", "--augmentations N"),
        ("band --help", "--images N"),
        ("trained-toy --help", "--learning-rate N"),
        ("labels --help", "InterCLR"),
        ("false-negatives --help", "--share N"),
    ],
)
def test_help_is_on_standard_output(words: str, phrase: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", *words.split()]) == 0
    output = capsys.readouterr()
    assert phrase in output.out and output.err == ""


@pytest.mark.parametrize("analysis", [Band(images=5), FalseNegatives(images=5, drawn=4), Labels(), QUICK, INFORMATION])
def test_every_analysis_keeps_a_table_that_is_plain_json_and_a_picture(
    analysis: Analysis, clustered_run: tuple[Path, Source], tmp_path: Path
) -> None:
    folder, source = clustered_run
    outcome = analyse(analysis, [folder], source, work=work(), out=tmp_path)
    assert json.loads(outcome.table_file.read_text())["rows"] == outcome.result.table() != []
    assert outcome.table_file.name == f"{analysis.name}.json" and outcome.picture_file.name == f"{analysis.name}.png"
    assert matplotlib.image.imread(outcome.picture_file).std() > 0.01


def test_help_describes_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", "--help"]) == 0
    output = capsys.readouterr().out.replace("\n  ", " ").splitlines()  # a sentence may go over two lines
    kinds = "similarity information band labels false-negatives optimal-toy trained-toy spread-toy".split()
    lines = {word: line for line in output if (word := line.partition(" ")[0]) in kinds}
    assert list(lines) == kinds and all(len(line) > 40 for line in lines.values())
    help_text = " ".join(lines["spread-toy"].split())
    assert "Bias and variances of NCE and CNCE against the number of negatives k" in help_text


class OwnResult:
    """Numbers of numpy and torch, and one that is none."""

    def lines(self) -> list[str]:
        return []

    def table(self) -> list[Row]:
        return [{"one": np.float32(0.5), "two": torch.tensor(3), "three": math.nan}]

    def figure(self) -> Figure:
        return Figure()


@dataclass(frozen=True)
class Own:
    """An analysis of one's own."""

    name: ClassVar[str] = "own"

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> AnalysisResult:
        return OwnResult()


def test_an_own_analysis_is_stored_as_plain_numbers_in_a_folder_named_by_text(
    run: tuple[Path, Source], tmp_path: Path
) -> None:
    """A folder given as text failed when all was computed; so did numbers that JSON does not hold."""
    saved = analyse(Own(), [str(run[0])], run[1], work=work(), out=str(tmp_path / "own"))
    assert json.loads(saved.table_file.read_text())["rows"] == [{"one": 0.5, "two": 3, "three": None}]
    assert experiment(
        OptimalToy(negatives=4, pairs=64, pool=64, repetitions=2), str(tmp_path / "toy")
    ).table_file.exists()
