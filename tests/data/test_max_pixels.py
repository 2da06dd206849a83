"""The bound on the pixels of an image, as the environment gives it to every command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tar_shards import png

from vantage.data.decode import _bound
from vantage.errors import UserError


@pytest.mark.parametrize(("text", "bound"), [("", 80_000_000), ("200", 200), ("90_000_000", 90_000_000)])
def test_the_bound_is_a_number_of_pixels(text: str, bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_MAX_PIXELS", text)
    assert _bound() == bound


@pytest.mark.parametrize("text", ["8e7", "0", "-1", "many", "9" * 40])
def test_what_is_no_number_of_pixels_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_MAX_PIXELS", text)
    with pytest.raises(UserError, match=f"VANTAGE_MAX_PIXELS is '{text}': give a number of pixels"):
        _bound()


@pytest.mark.slow
def test_commands_read_it(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(png(number, 16))
    statuses, lines = [], []
    for bound in ("256", "255", "many"):
        environment = {**os.environ, "VANTAGE_MAX_PIXELS": bound, "VANTAGE_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, "-m", "vantage.cli", "views", "statistics", "--data", str(tmp_path)]
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        statuses.append(process.returncode)
        lines.append(process.stderr.splitlines()[-1])
    assert statuses == [0, 2, 2], lines
    assert "more than the bound of 255" in lines[1] and "raise the bound (VANTAGE_MAX_PIXELS=256)" in lines[1]
    assert lines[2] == "vantage: VANTAGE_MAX_PIXELS is 'many': give a number of pixels, such as 200000000"
