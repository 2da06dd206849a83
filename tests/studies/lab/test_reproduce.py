"""`vantage reproduce` on the command line: the list, claims and commands, and what each level prints."""

from pathlib import Path

import pytest
from lab_entries import entry_of

from vantage.cli import main
from vantage.studies.lab import ENTRIES, completion, numbers_in, origins_of_runs
from vantage.studies.lab.levels import LEVELS

RESULTS = "benchmarks/results/claims"


@pytest.mark.slow
def test_the_command_line_lists_shows_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jcl-table-1", "--show"]) == 0
    output = capsys.readouterr().out
    for part in (
        "1: JCL is above MoCo v2 (§4.2); paper: JCL − MoCo v2 (top-1): +1.1",
        "JCL: paper: top-1 68.7, top-5 89; here: moco_v2 for 4 epochs, then jcl for 1 epoch",
        "vantage reproduce jcl-table-1 --level two-cores --data tiny-imagenet-50=PATH",
        "vantage pretrain jcl",
        "vantage pretrain moco_v2",
        "# each vantage pretrain says how long it will take on its machine, before its first step",
        "results: docs/claims.md#jcl-table-1",
    ):
        assert part in output
    assert main(["reproduce", "jcl-table-2", "--level", "paper"]) == 0
    output = capsys.readouterr().out
    assert "# runs/jcl is trained by the commands of jcl-table-1" in output and "here: " not in output
    lab = ["--out", str(tmp_path / "lab")]
    assert main(["reproduce", "jcl-table-1", *lab, "--missing"]) == 2
    assert "give --data tiny-imagenet-50=PATH" in capsys.readouterr().err
    for words, problem in (
        (["jcl-tabel-1"], "did you mean jcl-table-1"),
        (["jcl-table-1", "--data", "x"], "write NAME=PATH"),
        (["jcl-table-1", "--data", "imagenet=x"], "no set 'imagenet'"),
        (["jcl-table-1", "--seeds", "5..1"], "write FIRST..LAST"),
        (["jcl-table-1", "--jobs", "0"], "at least 1"),
    ):
        assert main(["reproduce", *words, *lab]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("level", ["two-cores", "overnight", "one-gpu"])
def test_the_list_shows_the_state_of_a_level_by_the_results_that_are_named(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = next(each for each in LEVELS if each.name == level).entry(entry_of("jcl-table-1"))
    folder = next(each for each in LEVELS if each.name == level).folder(Path(RESULTS))
    state = completion(entry, numbers_in(folder, entry))
    assert main(["reproduce", "--level", level, "--results", RESULTS]) == 0
    assert f"; {state}; " in capsys.readouterr().out.splitlines()[0] and not state.startswith("0")


@pytest.mark.slow
def test_the_list_says_where_published_results_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--out", str(tmp_path / "lab")]) == 0
    assert "published results are on the page docs/claims.md" in capsys.readouterr().err.splitlines()[-1]
    assert main(["reproduce", "--results", RESULTS]) == 0 and not capsys.readouterr().err
    assert main(["reproduce", "--level", "smoke", "--out", str(tmp_path / "lab")]) == 0
    assert "a seed" not in capsys.readouterr().out


def test_every_run_of_a_command_is_trained_by_some_command() -> None:
    for entry in ENTRIES:
        words = {word for line in entry.commands for word in line.split() if word.startswith("runs/")}
        trained = {line.partition(" --out ")[2].split()[0] for line in entry.commands if " pretrain " in line}
        assert words - trained == set(origins_of_runs(entry, ENTRIES)), entry.name


@pytest.mark.slow
def test_a_toy_is_made_and_judged_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "cnce-appendix-c", "--level", "smoke", "--seeds", "0..1", "--out", str(tmp_path)]
    assert main([*words, "--missing"]) == 0
    assert "optimal critic: seed 0, toy" in capsys.readouterr().out
    assert main([*words, "cnce-table-5", "--missing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if not line.startswith("  ")]
    assert [head.partition(":")[0] for head in heads] == ["cnce-appendix-c", "cnce-table-5"]
    assert heads[0].startswith("cnce-appendix-c: 0 training runs of 0 images in all and 2 measurements: about ")
    assert "  optimal critic: seed 0, toy" in lines[: lines.index(heads[1])]
    assert main([*words, "--page", str(tmp_path / "claims.md")]) == 0
    output = capsys.readouterr()
    assert "to be done: 0 training runs of 0 images in all and 2 measurements" in output.err
    assert "CNCE's bias is at least as large as NCE's" in output.out
    assert "claims are not judged" in output.out and "4 differences computed, 2 seeds" in output.out
    assert not any(word in output.out for word in ("verdict", "undecided", "supported", "refuted"))
    assert "results of smoke are not on it" in output.err
    assert (tmp_path / "smoke-results" / "cnce-appendix-c.json").exists() and (tmp_path / "claims.md").exists()
    assert main([*words, "--quiet"]) == 0 and "to be done" not in capsys.readouterr().err


@pytest.mark.slow
def test_only_the_cells_with_a_name_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "cnce-table-5", "cnce-appendix-c", "--level", "smoke", "--seeds", "0", "--out", str(tmp_path)]
    assert main([*words, "--cell", "optimal critik"]) == 2
    assert "did you mean optimal critic" in capsys.readouterr().err
    assert main([*words, "--cell", "optimal critic"]) == 0
    assert "1 measurement" in capsys.readouterr().err
    assert main([*words, "--missing"]) == 0
    output = capsys.readouterr().out
    assert "cnce-table-5" in output and "cnce-appendix-c" not in output


@pytest.mark.slow
def test_two_processes_share_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "cnce-appendix-c", "--level", "smoke", "--seeds", "0..3", "--jobs", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "with 2 processes" in capsys.readouterr().err
    assert main([*words, "--out", str(tmp_path), "--missing"]) == 0 and not capsys.readouterr().out.strip()


@pytest.mark.slow
def test_commands_of_the_papers_scale_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line for entry in ENTRIES for line in entry.commands if "-toy" not in line}  # toys need no images
    assert lines
    for line in sorted(lines):
        program, *words = line.split()
        assert program == "vantage" and main(words) == 2, line  # the images are not here
        message = capsys.readouterr().err
        assert any(part in message for part in ("does not exist", "no run", "holds no", "is not a folder")), (
            f"{line}: {message}"
        )
