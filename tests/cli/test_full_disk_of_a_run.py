"""A disk that fills at any write of a run (one process or several) or of the demonstration; each continues later."""

import json
from pathlib import Path

import pytest
from full_disk import ENOUGH, Room, SmallDisk
from test_full_disk import MESSAGE, VERBS, begin, command_words, disk, disk_message, outside, plainly  # noqa: F401

pytestmark = pytest.mark.slow

PRETRAIN = (
    "pretrain moco_v2 DATA --epochs 2 --batch-size 16 --size 16 --backbone Convolutions((4,8)) --precision 32-true"
    " --set hardware.accelerator=cpu"
)


def contents(disk: SmallDisk, folder: str) -> tuple[dict[str, str], list[dict[str, object]]]:  # noqa: F811
    """The tensors of every checkpoint of a run, and its metrics without the seconds."""
    tensors = {
        name.removeprefix(folder): digest
        for name, digest in disk.files().items()
        if name.startswith(f"{folder}/checkpoint/step-") and name.endswith(".safetensors")
    }
    rows = [json.loads(line) for line in disk.read(f"{folder}/metrics.jsonl").splitlines()]
    return tensors, [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_a_run_whose_disk_fills_at_any_write_goes_on_as_if_it_had_not(disk: SmallDisk, outside: Path) -> None:  # noqa: F811
    begin(disk, outside)
    words = command_words(PRETRAIN, outside)
    first = disk.run(f"{words} --out mine")
    assert first.status == 0, first.err
    whole, pages_used = contents(disk, "mine"), ENOUGH.pages - first.room.pages
    sentences = []
    for pages in (0, 1, 3, 4, 5, 6, 7, pages_used // 2 + 1, pages_used - 1):
        disk.shell("rm -rf mine")
        sentences.append(disk_message(disk.run(f"{words} --out mine", Room(pages=pages))))
        files_at_stop = {name: digest for name, digest in disk.files().items() if name.startswith("mine/")}
        if "is intact" not in sentences[-1] and "start again at the first step" not in sentences[-1]:
            assert not files_at_stop, "nothing that would block the next start"
            continue
        for room in (Room(pages=0), Room(pages=1), Room(files=1)):
            sentences.append(disk_message(disk.run("resume mine --quiet", room)))
            assert {
                name: digest for name, digest in files_at_stop.items() if "/step-" in name
            }.items() <= disk.files().items()
        result = disk.run("resume mine --quiet")
        assert result.status == 0, result.err
        assert contents(disk, "mine") == whole
    for part in ("the settings", "provenance.json", "metrics.jsonl", "the checkpoint of step 3", "of step 6"):
        assert any(part in sentence for sentence in sentences), (part, sentences)
    first_checkpoint = [sentence for sentence in sentences if "the checkpoint of step 3" in sentence]
    assert all("start again at the first step with `vantage resume mine`" in each for each in first_checkpoint)


@pytest.mark.parametrize("pages", [0, 8])
def test_of_several_processes_all_stop(pages: int, disk: SmallDisk, outside: Path) -> None:  # noqa: F811
    """At the settings, and at the first checkpoint."""
    begin(disk, outside)
    result = disk.run(f"{command_words(PRETRAIN, outside)} --out two --devices 2", Room(pages=pages), anew=True)
    lines = [line for line in result.err.splitlines() if line.startswith("vantage: ")]
    assert result.status == 2 and "Traceback" not in result.err, result.err
    assert "vantage: another process of this run stopped: its message says why" in lines and len(lines) == 2
    assert MESSAGE.fullmatch(next(line for line in lines if "No space left" in line) + "\n")
    begun = "two/settings.json" in disk.files()
    assert begun == (pages > 0) and begun == any(name.startswith("two/") for name in disk.files())
    if begun:
        assert "start again at the first step with `vantage resume two`" in result.err
        assert disk.run("resume two --quiet", anew=True).status == 0


def test_a_demonstration_goes_on(disk: SmallDisk, outside: Path) -> None:  # noqa: F811
    """Its training is over when the disk is full."""
    begin(disk, outside)
    words, before = f"{VERBS['demo']} --quiet", disk.files()
    first = disk.run(words)
    assert first.status == 0, first.err
    names = {plainly(name) for name in disk.files().keys() - before.keys()}
    disk.shell("rm -rf show")
    assert "show/report.html" in disk_message(disk.run(words, Room(pages=ENOUGH.pages - first.room.pages - 1)))
    assert "show/report.html" not in disk.files()
    again = disk.run(words)
    assert again.status == 0, again.err
    assert {plainly(name) for name in disk.files().keys() - before.keys()} == names
    assert [line for line in again.out.splitlines() if " s in all" not in line] == [
        line for line in first.out.splitlines() if " s in all" not in line
    ]


def kept(disk: SmallDisk) -> dict[str, set[str]]:  # noqa: F811
    """The names of the files of each epoch that the run keeps, and what is left of others."""
    epochs: dict[str, set[str]] = {}
    for name in disk.files():
        if name.startswith("mine/epochs/"):
            _, _, epoch, file = name.split("/", 3)
            epochs.setdefault(epoch, set()).add(file)
    return epochs


def test_a_disk_that_fills_while_an_epoch_is_kept_loses_nothing(disk: SmallDisk, outside: Path) -> None:  # noqa: F811
    """The last pages and files of a run are those of the last epoch. It is kept with all of its files, or not at
    all."""
    begin(disk, outside)
    words = f"{command_words(PRETRAIN, outside)} --set monitoring.keep_every=1 --out mine"
    first = disk.run(words)
    assert first.status == 0, first.err
    whole, epochs = contents(disk, "mine"), kept(disk)
    assert set(epochs) == {"00001", "00002"} and len(epochs["00001"]) == 6
    pages, files = (before - after for before, after in zip(ENOUGH, first.room, strict=True))
    for room in (*(Room(pages=pages - n) for n in (1, 3)), *(Room(files=files - n) for n in (1, 2, 5, 9))):
        disk.shell("rm -rf mine")
        assert "epoch 2 could not be written to mine/epochs" in disk_message(disk.run(words, room)), room
        checkpoints = contents(disk, "mine")[0]
        assert kept(disk) == {"00001": epochs["00001"]} and checkpoints == whole[0]
        if room.pages < ENOUGH.pages:
            disk_message(disk.run("resume mine --quiet", Room(pages=0)))
            assert kept(disk) == {"00001": epochs["00001"]} and contents(disk, "mine")[0] == checkpoints
        result = disk.run("resume mine --quiet")
        assert result.status == 0, result.err
        assert contents(disk, "mine") == whole and kept(disk) == epochs
