"""Help: on standard output, on a screen, and at once."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

import vantage
from vantage.cli import main
from vantage.cli.reading.parser import Option, parser_of
from vantage.composition.expression import alternatives

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "usage: vantage VERB"),
        ("--help", "usage: vantage VERB"),
        ("--version", "vantage 0"),
        ("recipes --help", "--size N"),
        ("pretrain --help", "--set PATH=VALUE"),
        ("pretrain moco_v2 --help", "--learning-rate N"),
        ("resume --help", "--devices N"),
        ("embed --help", "--device DEVICE"),
        ("evaluate --help", "nearest-neighbor"),
        ("evaluate knn --help", "--temperature N"),
        ("export --help", "(torchvision, timm or detectron2)"),
        ("demo --help", "--out FOLDER"),
    ],
)
def test_help_is_on_standard_output(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == (0 if words else 2)
    output = capsys.readouterr()
    assert sentence in output.out
    assert output.err == ""


def test_help_and_slips_do_not_wait_for_torch() -> None:
    """That takes seconds. `evaluate` and `analyse` list what their rooms hold, so they wait."""
    program = """if True:
        import sys
        from vantage.cli import main
        from vantage.cli.program import VERBS
        verbs = [verb.__name__ for verb in VERBS if verb.__name__ not in ("evaluate", "analyse")]
        assert all(main([*verb, "--help"]) == 0 for verb in ([], *([verb] for verb in verbs)))
        assert all(main(["pretrain", slip, "1"]) == 2 for slip in ("--dat", "--epoch", "--lr", "--bach-size"))
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.slow
def test_libraries_that_load_slowly_wait_until_they_are_used(tmp_path: Path) -> None:
    """scikit-learn, with SciPy and pandas, takes longer than torch; torchvision as long, since it loads a compiler."""
    program = """if True:
        import sys, vantage.evaluate, vantage.report, vantage.studies.analyse, vantage.studies.lab, vantage.training
        from vantage.cli import main
        assert main(["recipes", "moco_v2"]) == 0
        assert main(["pretrain", "moco_v2", "--data", "nowhere", "--out", "run"]) == 2
        slow = {"sklearn", "pandas", "matplotlib", "tensorboard", "timm", "onnx", "torchvision", "torch._dynamo"}
        assert not slow & set(sys.modules), slow & set(sys.modules)

        import numpy
        from vantage.data.order import BatchOrder
        from vantage.data.loading import StreamedImages
        numpy.save("images.npy", numpy.zeros((9, 8, 8, 3), numpy.uint8))
        StreamedImages(vantage.open_source("images.npy"), None, BatchOrder(4, 0), num_workers=1)
        assert "torchvision.transforms.v2.functional" in sys.modules  # or each worker would import it

        from vantage.composition.codec import decode, encode
        run = vantage.everything()
        assert decode(encode(run), vantage.Run) == run and "sklearn" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True)


VERBS_WITH_HELP = (
    "", "recipes", "pretrain", "resume", "embed", "report", "evaluate", "evaluate knn", "evaluate detection",
    "evaluate finetune", "evaluate svm", "evaluate transfer", "evaluate retrieval", "evaluate segmentation", "compare",
    "benefit", "find", "find duplicates", "shots", "analyse", "analyse similarity", "analyse optimal-toy",
    "analyse views", "analyse views crop", "views", "views show", "views learn", "views statistics", "reproduce",
    "reproduce infomin-table-4", "export", "convert", "cache", "demo",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS_WITH_HELP)
def test_help_fits_a_screen(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*verb.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= (39 if verb == "pretrain" else 50) and max(map(len, lines)) <= 80
    assert lines[0].startswith("usage: vantage ")
    assert "%%" not in "".join(lines)


@pytest.mark.parametrize("verb", VERBS_WITH_HELP)
def test_help_names_every_choice(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the choices are too long to stand in place of the value, the sentence has them."""
    options: list[Option] = []

    def noting(name: str, about: str, every: Sequence[Option]) -> object:
        options.extend(every)
        return parser_of(name, about, every)

    monkeypatch.setattr("vantage.cli.reading.arguments.parser_of", noting)
    assert main([*verb.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    for option in options:
        kinds = [kind for kind in alternatives(option.annotation) if get_origin(kind) is Literal]
        words = " ".join(shown.partition(f"  {option.flag} ")[2].partition("\n  --")[0].split())
        assert [choice for kind in kinds for choice in get_args(kind) if str(choice) not in words] == [], option.flag


def test_help_on_a_share_says_which_ones_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["analyse", "false-negatives", "--help"]) == 0
    assert "above 0, at most 1;" in " ".join(capsys.readouterr().out.split())
    assert main(["analyse", "false-negatives", "run", "--data", str(tmp_path), "--share", "0"]) == 2
    assert "share is 0.0: give one above 0, at most 1" in capsys.readouterr().err


def test_the_command_line_itself_imports_no_torch() -> None:
    code = (
        "import sys, types\n"
        "package = types.ModuleType('vantage')\n"
        f"package.__path__ = [{str(Path(vantage.__file__).parent)!r}]\n"
        "sys.modules['vantage'] = package\n"
        "from vantage.cli import main\n"
        "assert main(['pretrain', '--help']) == 0\n"
        "assert main(['--help']) == 0 and main(['embed', '--help']) == 0 and main(['pretran']) == 2\n"
        "assert 'torch' not in sys.modules, 'torch is imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
