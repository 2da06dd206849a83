"""Every code block of every page runs, one page after another as a reader would go through it.

Python blocks of a page share their names; one that begins with `# name.py` is a file that the reader saves. Lines of
`bash` blocks that call `vantage` run in this process, with a network, images and a duration that a test can afford; the
folders that a page takes for granted are there. Other lines are known ones that cannot run here.
"""

import contextlib
import io
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tar_shards import samples, write_shard
from torchvision.models import resnet18

import vantage
from vantage.cli import main

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES += [REPOSITORY / "benchmarks" / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]

TRAINING = ("README.md", "docs/comparing.md", "docs/own_photos.md", "docs/weights_from_elsewhere.md")
TRAINING += ("docs/reproducing.md", "docs/scale.md", "docs/taking_it_elsewhere.md", "docs/using_features.md")
TRAINING += ("docs/inventing.md", "docs/many_machines.md", "docs/report.md")
"""Pages whose commands train several networks, or write them for other runtimes."""

NEEDS = {
    "scale.md": ("polars", "duckdb"),
    "taking_it_elsewhere.md": ("timm", "onnxruntime", "onnxscript", "pandas", "polars", "duckdb"),
}
"""Libraries that a page's reader has, and Vantage does not need."""

NOT_HERE = (
    r"python3 -m venv \.venv && ",  # the two commands of the README, which .ci/run runs
    r"bash \.ci/run$",
    r"pip install ",
    r"tensorboard ",
)
"""Lines that no test can run: they install something, run everything, or wait for a person."""
CODE = re.compile(r"^(>>>|\$|vantage |torchrun |python|import |from \w+ import )", re.MULTILINE)
"""How lines begin that belong in a block of their language."""

SMALL = ("--epochs=1", "--size=16", "--batch-size=16", "--precision=32-true")
"""What makes a `vantage pretrain` of a page short; its network is small too."""


SWEPT = ("--epochs=1", "--size=16", "--batch-size=16", "--backbone=convolutions", "--images=24")
"""What makes a sweep of a page short; its seeds stay."""

LEARNED = ("--epochs=1", "--size=16", "--set=batch_size=16")
"""What makes a `vantage views learn` of a page short."""


FEW = "--shares 100 --seeds 0 1 --epochs 1 --learning-rates 0.05"
"""Makes the `vantage benefit` of a page short; replaces its minutes."""

SHORTER = {
    "minutes=30": 'minutes=30.0, size=16, backbone="convolutions", changes={"epochs": 1, "batch_size": 16}',
    "shares=(0.01, 0.1, 1.0), budget=Budget(epochs=30)": "(1.0,), (0, 1), Budget(1, learning_rates=(0.05,))",
}
"""Makes a Python block of a page short; replaces its minutes and epochs."""


def blocks(page: Path) -> Iterator[tuple[str, int, str]]:
    """Language, first line and text of the code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        yield match.group(1), text[: match.start()].count("\n") + 2, match.group(2)


def commands(code: str) -> list[str]:
    """The commands of a `bash` block: continued lines joined, without comments."""
    lines = code.replace("\\\n", " ").splitlines()
    uncommented = (re.sub(r"(^|\s)#\s.*", "", line).strip() for line in lines)
    return [line for line in uncommented if line]


def with_small_settings(words: list[str], backbone: str) -> list[str]:
    """The words of a `vantage` command, with settings of a short training instead of the page's."""
    if words[0] == "benefit":
        return [*words[: words.index("--minutes")], *FEW.split()]
    if words[:2] == ["analyse", "views"]:
        return [*words, *SWEPT]
    if words[0] == "reproduce" and "--out" in words:
        return smoke(words)
    if words[:2] == ["views", "learn"]:
        return [*words, *LEARNED]
    if words[0] != "pretrain":  # on one process
        return words[: words.index("--devices")] if "--devices" in words else words
    small = (*SMALL, f"--backbone={backbone}")
    names = [option.partition("=")[0] for option in small]
    short_words, rest = [], iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in (*names, "--devices", "--nodes"):  # no other machine answers
            next(rest if not equals else iter(()), None)
        else:
            short_words.append(word)
    return [*short_words, *small]


def smoke(words: list[str]) -> list[str]:
    """The words of a `vantage reproduce` at the smoke level; of entries that need images, what is missing is listed."""
    if "--level" in words:
        words = words[: words.index("--level")] + words[words.index("--level") + 2 :]
    if "--data" in words:
        words = [*words[: words.index("--data")], *words[words.index("--data") + 2 :], "--missing"]
    return [*words, "--level=smoke", "--seeds=0"]


def shortened_python(code: str) -> str:
    """A Python block with what makes it short."""
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


def run_command(line: str, resnets: Collection[str] = ()) -> None:
    """Run one line of a `bash` block; the runs in the folders `resnets` train a ResNet."""
    if any(re.match(pattern, line) for pattern in NOT_HERE):
        return
    words = shlex.split(line)
    if "vantage.cli" in words:  # torchrun … -m vantage.cli VERB
        words = ["vantage", *words[words.index("vantage.cli") + 1 :]]
    if words[0] in ("srun", "mpirun"):  # srun … vantage VERB
        words = words[words.index("vantage") :]
    assert words[0] == "vantage", f"no test runs {line!r}"
    backbone = "resnet18" if any(folder in words for folder in resnets) else "convolutions"
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = main(with_small_settings(words[1:], backbone))
    assert status == 0, f"{line}\n{output.getvalue()}"


def write_images(folder: Path, count: int, seed: int) -> None:
    """Small colored noise."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    for number in range(count):
        color = chance.normal(60 + 60 * (seed % 3), 40, (20, 20, 3))
        Image.fromarray(color.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")


@pytest.fixture(scope="module")
def pages_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages take for granted: `photos/`, `labeled/`, and two runs."""
    folder = tmp_path_factory.mktemp("granted")
    write_images(folder / "photos", 32, 7)
    for seed, name in enumerate(("cat", "dog", "hen")):
        write_images(folder / "labeled" / name, 30, seed)
    recipe = vantage.moco_v2(size=16).fit(32).rescale(16, 1)
    backbone = vantage.Convolutions(widths=(4, 8))
    encoder = vantage.Encoder(backbone, vantage.MLP(8, 8), vantage.SplitBatchNorm(2))
    run = replace(
        recipe,
        encoders=vantage.Momentum(encoder),
        data=vantage.Data(str(folder / "photos")),
        hardware=vantage.Hardware("cpu", precision="32-true"),
    )
    for seed, name in enumerate(("first", "second")):
        vantage.train(replace(run, seed=seed), folder / "runs" / name)
    return folder


def write_shards(folder: Path) -> None:
    """A hundred shards of one image each, with the names that the page about them has."""
    for number in range(100):
        write_shard(folder / f"train-{number:06d}.tar", samples(number, 1))


def write_weights(folder: Path) -> None:
    """Published weights, by the names that the page about them has."""
    network = resnet18(weights=None).state_dict()
    for name in ("supervised", "a1_in1k"):
        save_file(network, folder / f"{name}.safetensors")
    query = {f"module.encoder_q.{name}": value for name, value in vantage.Convolutions().build().state_dict().items()}
    torch.save({"arch": "small", "state_dict": query}, folder / "moco_v2_800ep_pretrain.pth.tar")


def _page(page: Path) -> object:
    """A page by its name; those that train take the longest."""
    name = str(page.relative_to(REPOSITORY))
    return pytest.param(page, id=name, marks=pytest.mark.slow if name in TRAINING else ())


@pytest.mark.usefixtures("short_looks")
@pytest.mark.parametrize("page", [_page(page) for page in PAGES])
def test_the_code_of_a_page_runs(
    page: Path, pages_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in NEEDS.get(page.name, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    shutil.copytree(pages_folder, tmp_path, dirs_exist_ok=True)
    if page.name == "weights_from_elsewhere.md":
        write_weights(tmp_path)
    if page.name == "scale.md":
        write_shards(tmp_path / "shards")
    text = page.read_text(encoding="utf-8")
    resnets = re.findall(r"^vantage export (\S+) --to torchvision", text, re.MULTILINE)
    paths = re.findall(r"--out (runs/\S+)", text)
    for run in paths:
        shutil.rmtree(tmp_path / run, ignore_errors=True)
    before, names = set(sys.modules), {"__name__": "example"}
    try:
        for language, line, code in blocks(page):
            file = re.match(r"# (\w+\.py)\n", code)
            if language == "bash":
                for command in commands(code):
                    run_command(command, resnets)
            elif language == "python" and file:
                (tmp_path / file.group(1)).write_text(code, encoding="utf-8")
            elif language == "python":
                exec(compile("\n" * (line - 1) + shortened_python(code), str(page), "exec"), names)
            else:
                assert language == "text", f"line {line} of {page.name}: no test runs {language or 'unnamed'} blocks"
                assert not CODE.search(code), f"line {line} of {page.name}: code in a text block does not run"
    finally:
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == tmp_path:
                del sys.modules[name]


def test_commands_are_read_as_a_shell_would() -> None:
    assert commands("vantage a b \\\n    --c d  # why\n# alone\n\nvantage e 'x # y'\n") == [
        "vantage a b      --c d",
        "vantage e 'x",
    ]
    words = ["pretrain", "moco_v2", "--epochs", "200", "--seed=1", "--nodes", "2"]
    expected = ["pretrain", "moco_v2", "--seed=1"]
    assert with_small_settings(words, "convolutions") == [*expected, *SMALL, "--backbone=convolutions"]
    assert with_small_settings(["embed", "--epochs", "200"], "convolutions") == ["embed", "--epochs", "200"]


def test_what_a_test_shortens_is_on_a_page() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [long for long in SHORTER if long not in texts] == []


@pytest.mark.parametrize("code", [">>> 1 + 1", "run\nvantage embed", "torchrun x", "import duckdb", "$ ls"])
def test_code_in_a_text_block_is_seen(code: str) -> None:
    assert CODE.search(code) and not CODE.search("plan for 30 minutes\n  the vantage pretrain")


def test_an_unknown_command_is_no_command_that_passes() -> None:
    with pytest.raises(AssertionError, match="no test runs"):
        run_command("rm -rf photos")
