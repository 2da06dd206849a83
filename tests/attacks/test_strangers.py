"""A run's folder from a stranger: every verb that opens one refuses it in a line, and none leaves the folder,
waits forever or takes unbounded memory."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from fuzzing import TooLong
from small_runs import write_images

from vantage.cli import main
from vantage.errors import UserError
from vantage.storage.strangers import JSON_BYTES, RUN_NAMES, check_content, check_file, check_run_folder
from vantage.training.folder import checkpoint, settings

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"
DATA = f"--data {RUNS}/images.npz"
STEP = "checkpoint/step-000000008"

VERBS = (
    "resume run",
    f"pretrain simclr {DATA} --init run --out new",
    f"embed run {DATA} --out out.npy",
    f"embed run {DATA} --out parts",
    f"evaluate knn run {DATA}",
    f"evaluate retrieval run {DATA}",
    f"compare run {DATA} --protocols knn",
    "shots run",
    f"report run {DATA}",
    "export run --to safetensors",
    f"find duplicates run {DATA} --out x.csv",
    f"analyse labels run {DATA}",
    f"benefit run {DATA}",
    "recipes run",
    f"views show run {DATA}",
)


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def folder(path: Path) -> None:
    (path / "inside").mkdir(parents=True)


ATTACKS = (
    *((name, link("../victim/file"), "leads to no file") for name in ("settings.json", "metrics.jsonl")),
    *((name, link("../victim/new"), "leads to no file") for name in ("metrics.jsonl", "settings.py.txt")),
    ("provenance.json", link("../victim/file"), "leads to no file"),
    *((name, link("../victim"), "leads to no file") for name in ("evaluations", "events", "checkpoint", STEP)),
    *((name, link("../victim"), "leads to no file") for name in ("analyses", "report", "benefit")),
    (f"{STEP}/facts.json", link("../../../victim/file"), "leads to no file"),
    ("checkpoint/.draft-replaced", link("../../victim"), "leads to no file"),
    ("backbone-safetensors.safetensors", link("../victim/new"), "leads to no file"),
    ("evaluations/transfer", link("../../victim"), "leads to no file"),
    ("settings.json", link("settings.json"), "leads to no file"),
    *((name, link("/dev/zero"), "leads to no file") for name in ("settings.json", "metrics.jsonl")),
    *((name, os.mkfifo, "a pipe or a device") for name in ("settings.json", "metrics.jsonl", f"{STEP}/facts.json")),
    *((name, folder, "is a folder where a file") for name in ("settings.json", "metrics.jsonl", "provenance.json")),
    *((name, huge, "no such file that Vantage wrote") for name in ("settings.json", "metrics.jsonl")),
    *((name, huge, "no such file that Vantage wrote") for name in ("evaluations/lowshot.json", f"{STEP}/facts.json")),
)


@pytest.fixture(autouse=True)
def _not_for_ever() -> Iterator[None]:
    """A reader that waits for a pipe or reads a device is stopped, and the test fails."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run, in the current folder, beside what belongs to somebody else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").write_text("mine")
    return copytree(RUNS / "queue", tmp_path / "run")


def _peak() -> int:
    """Bytes that the process has had at most since the last reset of the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize(("name", "attack", "words"), ATTACKS, ids=[f"{n}-{w.split()[-1]}" for n, _, w in ATTACKS])
def test_no_verb_opens_it(
    name: str, attack: Callable[[Path], None], words: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        rmtree(path)
    path.unlink(missing_ok=True)
    attack(path)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    for verb in VERBS:
        assert main(verb.split()) == 2, verb
        error = capsys.readouterr().err
        assert words in error and str(path.name) in error, (verb, error)
        assert error.count("\n") == 1 and "Traceback" not in error, (verb, error)
    assert _peak() - before < 1 << 29  # the modules of the verbs take some
    assert sorted(Path("victim").iterdir()) == [Path("victim/file")] and Path("victim/file").read_text() == "mine"
    assert not any(Path(left).exists() for left in ("new", "out.npy", "parts", "x.csv", "report.html"))


def test_tensors_without_end_are_not_digested(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (run / "checkpoint").iterdir():
        os.truncate(step / "tensors.safetensors", 1 << 40)
    for verb in (f"resume run {DATA}", *VERBS[1:5]):
        assert main(verb.split()) == 2, verb
        assert "step-000000008 is damaged" in capsys.readouterr().err, verb


def test_a_run_that_is_reached_by_a_link_is_opened(run: Path, tmp_path: Path) -> None:
    """The user named the link. Links to files of the folder stay inside, and what Vantage does not use is not looked
    at."""
    (run / "settings.json").rename(run / "first.json")
    (run / "settings.json").symlink_to("first.json")
    (run / "photos").symlink_to("../victim")
    os.mkfifo(run / "pipe")
    (tmp_path / "link").symlink_to(run)
    assert settings.read(tmp_path / "link") == settings.read(RUNS / "queue")
    assert checkpoint.latest(tmp_path / "link") is not None


def test_what_the_verbs_write_is_looked_at(run: Path, tmp_path: Path) -> None:
    """A name that a verb adds to a run's folder and that nobody checks would be a way out."""
    data = write_images(tmp_path / "images.npz")
    for verb in (f"evaluate knn run --data {data} --k 5", "export run --to safetensors", f"resume run {DATA}"):
        assert main(verb.split()) == 0, verb
    (run / "reference.npz").unlink()
    names = {path.name for path in run.iterdir()}
    assert len(names) > 6
    for name in names:
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(UserError, match="leads to no file"):
            check_run_folder(tmp_path)
        (tmp_path / name).unlink()


def test_learned_views_are_opened_in_the_same_way(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("view_learning.json", "last.safetensors", "metrics.jsonl"):
        views = copytree(RUNS / "learning", tmp_path / f"views-{name}")
        (views / name).unlink()
        (views / name).symlink_to("../victim/file")
        for verb in (f"views learn unsupervised {DATA} --out {views}", f"pretrain simclr {DATA} --learned {views}"):
            assert main(verb.split()) == 2
            assert "leads to no file of its folder" in capsys.readouterr().err


def test_parts_of_embeddings_and_their_drafts_are_not_links(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "part-00000-of-00001.parquet"
    for path in (tmp_path / "parts" / name, tmp_path / "parts.drafts" / f"{name}.draft"):
        path.parent.mkdir()
        path.symlink_to("../victim/file")
        assert main(f"embed run {DATA} --out parts".split()) == 2
        assert f"{name} is a link" in capsys.readouterr().err.replace(".draft", "")
        path.unlink()
    assert Path("victim/file").read_text() == "mine"


def test_many_large_files_are_refused_together(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.json").touch()
        os.truncate(tmp_path / f"{number}.json", JSON_BYTES)
    check_content(tmp_path)
    (tmp_path / "more.json").write_text("{}")
    with pytest.raises(UserError, match="more than 268,435,456"):
        check_content(tmp_path)


def test_a_file_that_is_named_may_be_a_link_but_no_device(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("a.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    check_file(tmp_path / "link.json")
    check_file(tmp_path / "nothing.json")
    with pytest.raises(UserError, match="pipe or a device"):
        check_file(tmp_path / "zero.json")
    assert len(set(RUN_NAMES)) == len(RUN_NAMES)
