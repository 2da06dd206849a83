"""`vantage analyse views`, as it is typed."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny import images

from vantage.cli import main

SMALL = ("--backbone", "Convolutions((4, 6))", "--batch-size", "8", "--seeds", "0", "--epochs", "1")
CPU = (
    "--set",
    "accelerator=cpu",
    "--set",
    "precision=32-true",
    "--set",
    "information.negatives=5",
    "--num-workers",
    "1",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of other tests."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path_factory.mktemp("cache")))


def run_of(out: Path) -> dict:
    """The settings of the only run of a sweep."""
    (folder,) = (out / "runs").iterdir()
    return json.loads((folder / "settings.json").read_text())["run"]


@pytest.mark.slow
def test_a_fifth_is_held_out_and_never_trained_on(
    images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep"
    words = ("analyse", "views", "jitter", "--data", images_path, "--out", str(out), "--values", "0.5", *SMALL, *CPU)
    assert main(words) == 0
    output = capsys.readouterr()
    run = run_of(out)
    assert run["data"]["hold_out"] == 0.2
    assert run["encoders"]["encoder"]["backbone"]["widths"] == [4, 6]
    assert (run["epochs"], run["batch_size"], run["seed"], run["recipe"]) == (1, 8, 0, "moco_v2")
    assert run["views"]["views"][0]["operations"][0]["hue"] == pytest.approx(0.1)
    record = json.loads((out / "sweep.json").read_text())
    assert (record["train"]["images"], record["test"]["images"]) == (39, 9)
    assert "strength x of color jitter" in output.out and "0.5" in output.out and "raw pixels" in output.out
    assert {path.name for path in out.iterdir()} == {
        "sweep.json", "runs", "jitter.md", "jitter.csv", "jitter.png", "jitter.svg",
    }  # fmt: skip
    assert main(words) == 0
    assert "done already: 1 of 1 run\n" in capsys.readouterr().err
    assert main((*words, "--batch-size", "4")) == 2
    assert "holds another sweep: base." in capsys.readouterr().err


@pytest.mark.slow
def test_any_field_of_a_run_can_be_swept_while_others_are_set(
    images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test, out = images(12, seed=1, size=16), tmp_path / "sweep"
    pixels = np.stack([test.image(n).permute(1, 2, 0).numpy() for n in range(12)])
    np.savez(tmp_path / "test.npz", images=pixels, labels=[str(test.label(n)) for n in range(12)])
    words = (
        "analyse",
        "views",
        "crop.scale.0=0.3",
        "--data",
        images_path,
        "--test",
        str(tmp_path / "test.npz"),
        "--out",
    )
    more = ("--images", "24", "--no-baselines", "--discard", "--set", "temperature=0.4")
    assert main((*words, str(out), *more, *SMALL, *CPU)) == 0
    record = json.loads((out / "sweep.json").read_text())
    assert record["settings"] == {"path": "crop.scale.0"}
    assert (record["train"]["images"], record["test"]["images"]) == (24, 12)
    assert record["base"]["branches"][0]["estimator"]["temperature"] == 0.4
    (row,) = record["rows"]
    assert (row["label"], row["number"]) == ("0.3", 0.3)
    assert not list((out / "runs").iterdir())
    output = capsys.readouterr()
    assert "crop.scale.0" in output.out and "if you only need the table" not in output.err


@pytest.mark.slow
def test_few_labels_among_many_images_are_enough(tmp_path: Path) -> None:
    source, lines = images(30, seed=1, size=16), list[str]()
    for number in range(30):
        Image.fromarray(source.image(number).permute(1, 2, 0).numpy()).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png" + f" {source.label(number)}" * (number < 15))
    (tmp_path / "list.txt").write_text("\n".join(lines))
    out = tmp_path / "sweep"
    words = ("analyse", "views", "jitter", "--data", str(tmp_path / "list.txt"), "--out", str(out), "--values", "0.5")
    assert main((*words, "--no-information", *SMALL, *CPU[:4])) == 0
    record = json.loads((out / "sweep.json").read_text())
    assert record["train"]["images"] > 20 and ["knn", 1, {"k": 12, "temperature": 0.07}] in record["protocols"]


@pytest.mark.slow
def test_several_values_of_set_are_a_sweep(
    images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same sweep as with the fields in front, whatever is between them; a single value holds for all runs."""
    from vantage.cli.analyse.sweep import _sweep_first

    front = ["epochs=1,2", "crop.size=8,16", "--data", images_path, "--set", "temperature=0.4", "--out", "o"]
    for words in (
        ["--data", images_path, "--set", "epochs=1,2", "crop.size=8,16", "temperature=0.4", "--out", "o"],
        [
            "--data",
            images_path,
            "--set",
            "epochs=1,2",
            "--set=crop.size=8,16",
            "--set",
            "temperature=0.4",
            "--out",
            "o",
        ],
    ):
        assert _sweep_first(words) == front
    for words in (front, ["crop", "--set", "crop.scale=0.2,1"], [], ["--set"], ["crop", "--set", "--out", "o"]):
        assert _sweep_first(words) == words
    words = ("analyse", "views", "--data", images_path, "--out", str(tmp_path / "sweep"), "--no-baselines")
    assert main((*words, "--set", "crop.scale.0=0.3,0.5", "temperature=0.2,0.4", *SMALL, *CPU)) == 0
    record = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert [row["label"] for row in record["rows"]] == ["0.3, 0.2", "0.5, 0.4"]
    runs = tmp_path / "sweep" / "runs"
    size = sum(file.stat().st_size for file in runs.rglob("*") if file.is_file())
    said = f"the runs in {runs} take {size / 1000:,.1f} KB: if you only need the table, remove them (--discard)"
    assert said in capsys.readouterr().err.splitlines()


@pytest.mark.slow
def test_fields_that_vary_together_can_become_a_grid(
    images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is planned is said before training; finished runs are kept; without I_NCE there is one picture."""
    out = tmp_path / "sweep"
    words = ("analyse", "views", "temperature=0.2,0.4", "weight_decay=0.001,0.1", "--data", images_path)
    more = ("--out", str(out), "--no-baselines", "--no-information", *SMALL, *CPU[:4], *CPU[6:])
    assert main((*words, *more)) == 0
    notes = capsys.readouterr().err
    assert "2 points × 1 seed: temperature, weight_decay = 0.2, 0.001; 0.4, 0.1\n" in notes
    assert main((*words, *more, "--seeds", "5")) == 0
    assert "2 points × 1 seed (5): temperature" in capsys.readouterr().err  # one seed, not five
    assert main((*words, "--grid", *more)) == 0
    output = capsys.readouterr()
    assert "4 points × 1 seed: temperature, weight_decay = 0.2, 0.001; 0.2, 0.1; 0.4, 0.001; 0.4, 0.1" in output.err
    assert "done already: 2 of 4 runs\n" in output.err
    rows = [line.split()[:3] for line in output.out.splitlines()[2:]]
    assert rows == [[t, w, "1"] for t in ("0.2,", "0.4,") for w in ("0.001", "0.1")]
    assert "I_NCE" not in output.out
    record = json.loads((out / "sweep.json").read_text())
    assert record["settings"] == {"paths": ["temperature", "weight_decay"]} and record["information"] is None
    assert all(row["i_nce"] is None and row["branches"] == [] for row in record["rows"])
    assert {path.name for path in out.iterdir()} == {
        "sweep.json", "runs", "field.md", "field.csv", "field.png", "field.svg",
    }  # fmt: skip
    assert main((*words, *more[:3], *SMALL, *CPU)) == 2
    assert "holds another sweep: information is None there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "analyse views needs a sweep first"),
        (("crop", "--data", "DATA", "--out", "o", "--grid"), "crop is a sweep of its own: leave --grid out"),
        (("epochs=1,2", "--data", "DATA", "--out", "o", "--grid"), "only epochs was given"),
        (("--data", "DATA", "--out", "o", "--set", "epochs=1,2", "crop.size=8,9,10"), "combination with --grid"),
        (
            ("crop", "--data", "DATA", "--out", "o", "--no-information", "--set", "information.draws=1"),
            "so information.draws=1 has no use",
        ),
        (("crpo",), "there is no sweep 'crpo'; did you mean crop?"),
        (("crop", "--out", "o"), "needs --data"),
        (("crop", "--data", "DATA"), "needs --out"),
        (("crop", "--data", "DATA", "--out", "o", "--vlaues", "0.1"), "no option --vlaues; did you mean --values?"),
        (("crop", "--data", "DATA", "--out", "o", "--values", "a"), "--values"),
        (("crop", "--data", "DATA", "--out", "o", "--values", "0"), "crop cannot be 0: a crop's scale"),
        (("crop", "--data", "DATA", "--out", "o", "--recipe", "mocov2"), "no recipe 'mocov2'; did you mean moco_v2?"),
        (("crop.scal=0.1", "--data", "DATA", "--out", "o"), "no field 'crop.scal'; did you mean"),
        (("crop.scale=", "--data", "DATA", "--out", "o"), "names no field and values"),
        (("--data", "DATA", "--out", "o", "--set", "epochs=1"), "(or several values, such as --set epochs=10,20)"),
        (("--data", "DATA", "--out", "o", "--set", "crop.scal=0.1,0.2"), "no field 'crop.scal'; did you mean"),
        (("--data", "DATA", "--out", "o", "--set", "epochs=1,2", "crop.size=8,9,10"), "the same number of values, but"),
        (("crop", "--data", "DATA", "--out", "o", "--set", "accumulate=1", "crop.szie=8"), "no field 'crop.szie'; did"),
        (("--set", "--data", "DATA", "--out", "o"), "needs a sweep first"),
        (("crop", "--data", "DATA", "--out", "o", "--set"), "--set: expected one argument"),
        (("color", "--data", "DATA", "--out", "o", "--recipe", "simclr"), "are not channels of a color space"),
        (("distance", "--data", "DATA", "--out", "o", "--values", "2", "--patch", "16"), "the value 2 does not fit"),
        (("jitter", "--data", "nowhere", "--out", "o"), "nowhere"),
        (("jitter", "--data", "DATA", "--out", "o", "--images", "99"), "99 training images were asked for, but"),
        (("jitter", "--data", "DATA", "--out", "o", "--set", "information.negatives=50"), "ask for fewer negatives"),
        (("jitter", "--data", "DATA", "--test", "DATA", "--out", "o"), "the test images are the training images"),
    ],
)
def test_mistakes_are_reported(
    words: tuple[str, ...],
    message: str,
    images_path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(("--quiet", "analyse", "views", *(images_path if word == "DATA" else word for word in words))) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_help_names_sweeps_and_their_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("analyse", "views", "--help")) == 0
    about = " ".join(capsys.readouterr().out.split())
    assert "crop, jitter, distance, blur, color, ladder, operations" in about
    assert "is two points, (10, 16) and (20, 32). With --grid it is all four combinations." in about
    assert main(("analyse", "views", "distance", "--help")) == 0
    output = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for word in (
        "--patch",
        "--values",
        "--set information.negatives=100",
        "--seeds",
        "--backbone",
        "in pixels",
        "--[no-]grid",
        "--[no-]information",
    ):
        assert word in output
    assert main(("analyse", "--help")) == 0
    assert "vantage analyse views SWEEP" in " ".join(capsys.readouterr().out.split())
