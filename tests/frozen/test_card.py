"""A model card says what the run's folder says, and nothing that images or commands hold is Markdown or HTML there."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from known_curves import curve
from safetensors.torch import save_file
from tiny import saved_run, tiny_run
from torchvision.models import resnet18

import vantage
from vantage.encoders import Encoder, LinearHead, ResNet, ResNet9, Shared
from vantage.errors import UserError
from vantage.frozen.encoder import load
from vantage.frozen.export.backbone import export
from vantage.frozen.export.card import LICENSE, card_of
from vantage.storage.files import write_json
from vantage.training.run import Run

HOSTILE = "photos/`<script>`|``x``\n# no heading"


def run_of(backbone: vantage.Backbone) -> Run:
    encoders = Shared(Encoder(backbone, LinearHead(8)))
    return replace(tiny_run(), encoders=encoders, epochs=20, data=vantage.Data(HOSTILE))


def finished_run(folder: Path, run: Run) -> Path:
    """A run's folder with everything that a card shows."""
    saved_run(folder, run)
    rows = [json.dumps(row) + "\n" for row in curve(run.epochs)]
    (folder / "metrics.jsonl").write_text("".join(rows))
    hardware = {"processor": "one", "cores": 1, "threads": 1, "gpus": []}
    record = {"data": {"fingerprint": "f1n9", "images": 1300}, "command": "vantage pretrain `x`", "commit": "c0ffee"}
    write_json(folder / "provenance.json", [{**record, "versions": {"torch": "2.x"}, "hardware": hardware}] * 2)
    write_result(folder, "mine", load(folder).digest(), 61.5)
    write_result(folder, "another", "of another checkpoint", 99.9)
    return folder


def write_result(folder: Path, name: str, encoder: str, value: float) -> None:
    measure_of = {"moco_v2": value, "raw pixels": 40.0}
    outcomes = {
        network_name: {"measures": {"top-1": one}, "test_images": 500} for network_name, one in measure_of.items()
    }
    record = {"protocol": "knn", "version": 3, "settings": {"k": 20}, "checkpoint": "step-000000007"}
    (folder / "evaluations").mkdir(exist_ok=True)
    write_json(folder / "evaluations" / f"{name}.json", {**record, "encoder": encoder, "outcomes": outcomes})


def test_a_card_says_what_the_folder_holds(tmp_path: Path) -> None:
    run = run_of(ResNet9(2))
    result = export(finished_run(tmp_path / "run", run), "safetensors", tmp_path / "backbone.safetensors")
    assert result.card == tmp_path / "backbone.safetensors.md"
    card = result.card.read_text()
    assert (
        "model = ResNet9(width=2, stem_stride=1, in_channels=3, features=0).build()" in card
        and "load_file('backbone.safetensors')" in card
    )
    assert "16 features of an image" in card and "shorter side resized to 32 pixels" in card
    assert "* data fingerprint: `f1n9`" in card and "* commit: `c0ffee`" in card and card.count("Resumed by:") == 1
    row = re.search(r"^\| knn, version 3 .*$", card, re.MULTILINE)
    assert row and [cell.strip() for cell in row[0].strip("|").split("|")][1:] == [
        "k 20", "top-1", "61.50", "40.00", "–", "500"
    ]  # fmt: skip
    assert "99.90" not in card and "Healthy: " in card and f"under {LICENSE}" in card
    assert "estimator=InfoNCE(temperature=0.1)" in card


def test_a_planned_run_says_its_budget_and_what_the_plan_chose(tmp_path: Path) -> None:
    run = run_of(ResNet9(2))
    result = export(finished_run(tmp_path / "free", run), "safetensors", tmp_path / "free.safetensors")
    assert "a plan for" not in result.card.read_text()
    data, minutes = replace(run.data, hold_out=0.1), replace(run.monitoring, minutes=12.5)
    folder = finished_run(tmp_path / "run", replace(run, data=data, monitoring=minutes))
    rows = [json.dumps(row | {"seconds": 30.0 * row["epoch"]}) + "\n" for row in curve(run.epochs)]
    (folder / "metrics.jsonl").write_text("".join(rows))
    card = export(folder, "safetensors", tmp_path / "planned.safetensors").card.read_text()
    assert "a plan for 12 minutes of training on the machine below" in card and "Training took 10 minutes." in card
    lines = card.splitlines()
    assert "* network: `ResNet9(width=2), views of 32 px`" in lines and "* epochs: `20`" in lines
    assert "* held out to judge by: `10 % of the images`" in lines
    assert any(line.startswith(f"* method: `moco_v2, batch {run.batch_size}, ") for line in lines)


def test_what_comes_from_outside_stays_text(tmp_path: Path) -> None:
    card = export(finished_run(tmp_path / "run", run_of(ResNet9(2))), "safetensors", tmp_path / "a.safetensors").card
    lines = card.read_text().splitlines()
    assert "* images: ``` 1,300 from photos/`<script>`|``x`` # no heading ```" in lines
    assert "* command: `` vantage pretrain `x` ``" in lines
    headings = [line for line in lines if line.startswith("#")]
    assert [line for line in headings if line.startswith("# ")] == ["# moco\\_v2, exported to safetensors"]
    assert headings[1:] == [f"## {name}" for name in (
        "Use", "What it learned from, and how", "Results", "Where it comes from", "License"
    )]  # fmt: skip


@pytest.mark.slow
def test_cards_of_a_folder_for_detectron2_and_of_weights_from_elsewhere(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", run_of(ResNet(18)))
    card = export(run, "detectron2", tmp_path / "detectron2").card
    assert card == tmp_path / "detectron2" / "README.md" and "train_net.py --config-file" in card.read_text()
    weights = tmp_path / "resnet18.safetensors"
    save_file(resnet18(weights=None).state_dict(), weights)
    elsewhere = Path(f"torchvision:resnet18={weights}")
    text = export(elsewhere, "timm", tmp_path / "timm.safetensors").card.read_text()
    assert "These weights come from elsewhere." in text and "No evaluation of this backbone is recorded" in text


def test_weights_in_a_file_below_a_run_are_not_that_run(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", run_of(ResNet9(2)))
    file = run / "exports" / "other.safetensors"
    file.parent.mkdir()
    save_file({"weight": torch.zeros(1)}, file)
    card = card_of(replace(load(run), checkpoint=file), "onnx", "")
    assert "These weights come from elsewhere." in card and "f1n9" not in card


def test_an_export_that_is_refused_leaves_no_card(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", run_of(ResNet9(2)))
    with pytest.raises(UserError, match="torchvision has no network"):
        export(run, "torchvision", tmp_path / "a.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_license_of_a_card_is_that_of_the_package(repository: Path) -> None:
    assert tomllib.loads((repository / "pyproject.toml").read_text())["project"]["license"] == LICENSE
