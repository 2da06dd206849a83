"""A full folder for temporary files: verbs that write there say so in one sentence, and others do without it."""

import re
import shutil
from pathlib import Path

import pytest
from full_disk import Room, SmallDisk
from test_full_disk import VERBS, command_words, disk, outside  # noqa: F401

pytestmark = pytest.mark.slow

PLAN = (
    "pretrain moco_v2 DATA --minutes 1 --size 16 --backbone Convolutions((4,8)) --precision 32-true"
    " --set hardware.accelerator=cpu --out mine"
)
WRITING = {"plan": PLAN, **{verb: VERBS[verb] for verb in ("benefit", "export to onnx", "export to torch")}}
"""Verbs that time a checkpoint or a training there, or trace a network."""
NO_FOLDER = "temporary files could not be written: No usable temporary directory found in .*"
NO_ROOM = r"the checkpoint of step 1 could not be written to \S+/temporary/vantage-\S+: No space left on device"


def run(
    words: str,
    room: Room,
    disk: SmallDisk,  # noqa: F811
    outside: Path,  # noqa: F811
    folder: Path,
) -> tuple[int, str]:
    """The status and the messages of a verb that keeps its temporary files on the disk and its results in `folder`."""
    disk.shell("rm -rf * && echo held > held && mkdir temporary")
    shutil.copytree(outside / "run", folder / "run")
    words = command_words(words, outside).replace(" run ", f" {folder}/run ").replace("--out ", f"--out {folder}/")
    result = disk.run(words, room, temporary="temporary")
    assert not any("vantage-" in name for name in disk.files()), "no temporary file of ours stays"
    return result.status, result.err


@pytest.mark.parametrize(
    ("verb", "room", "problem"),
    [
        *((verb, Room(pages=0), NO_FOLDER) for verb in WRITING),
        ("plan", Room(files=0), NO_FOLDER),
        ("plan", Room(pages=3), NO_ROOM),
    ],
)
def test_a_full_temporary_folder_is_an_error(
    verb: str,
    room: Room,
    problem: str,
    disk: SmallDisk,  # noqa: F811
    outside: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    status, err = run(WRITING[verb], room, disk, outside, tmp_path)
    assert status == 2 and re.fullmatch(rf"vantage: {problem}\. Free some space\b.*\n", err), err
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("verb", ["svm", "embed .npy", "report"])
def test_other_verbs_need_no_temporary_folder(
    verb: str,
    disk: SmallDisk,  # noqa: F811
    outside: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    assert run(VERBS[verb], Room(pages=0), disk, outside, tmp_path) == (0, "")
