"""Every function of Python that takes a path takes it as text too."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.curation import find_outliers, write_findings
from vantage.data import Source, open_source
from vantage.encoders import Convolutions, Encoder, LinearHead, Shared
from vantage.evaluate import KNN, evaluate
from vantage.evaluate.compare.comparison import compare
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import load
from vantage.frozen.export.backbone import export
from vantage.frozen.networks import trained_networks
from vantage.report.write import write_report
from vantage.studies.benefit import BenefitPlan, Budget, measure_benefit


@pytest.fixture
def run(tmp_path: Path) -> str:
    one = tiny_run(Shared(Encoder(Convolutions((4, 8)), LinearHead(8))))
    for seed in (0, 1):
        saved_run(tmp_path / f"run{seed}", replace(one, seed=seed), seed)
    return str(tmp_path / "run0")


def sets() -> tuple[Source, Source]:
    return images(30, 0), images(12, 1)


def test_results_are_written_to_a_path_as_text(run: str, tmp_path: Path) -> None:
    """An evaluation was lost, after hours, if its file was given as text."""
    file = str(tmp_path / "result.json")
    evaluate(run, KNN(5), *sets(), work=cpu_work(tmp_path), out=file)
    assert json.loads(Path(file).read_text())["protocol"] == "knn"
    assert write_embeddings(load(run), sets()[1], str(tmp_path / "a.npy"), cpu_work(tmp_path)).exists()
    write_findings(
        find_outliers(load(run), images(30, 0), cpu_work(tmp_path)), f"{tmp_path}/a.csv", f"{tmp_path}/a.png"
    )
    assert (tmp_path / "a.csv").exists() and (tmp_path / "a.png").exists()
    assert write_report([run], images(30, 0), f"{tmp_path}/page.html", work=cpu_work(tmp_path))
    assert (tmp_path / "page.html").exists() and trained_networks(run).images > 0
    assert export(run, "safetensors", str(tmp_path / "backbone.safetensors")).file.exists()


@pytest.mark.slow
def test_runs_and_images_are_named_by_text(run: str, tmp_path: Path) -> None:
    other = run.replace("run0", "run1")
    rows = compare([run, other], [KNN(5)], *sets(), cpu_work(tmp_path)).rows
    assert sum(row.trained for row in rows) == 1
    plan = BenefitPlan((1.0,), (0, 1), Budget(1, learning_rates=(0.01,)))
    ways = measure_benefit(run, *sets(), str(tmp_path / "out"), plan, others=[other], work=cpu_work(tmp_path)).ways
    assert any("run1" in way for way in ways)
    assert len(open_source("photographs:test", cache=str(tmp_path / "cache"), data_root=str(tmp_path))) > 1
