"""Exports that are killed while they write."""

from pathlib import Path

import kill_moments
import pytest

from vantage.frozen.export.backbone import Format, export


def export_until_killed(run: Path, to: Format, out: Path, files: int) -> None:
    """Export a run. This process is killed when that many files are complete, and the next one has its temporary
    name."""
    complete, replace = [0], Path.replace

    def replace_or_die(self: Path, target: Path) -> Path:
        if complete[0] == files:
            kill_moments.die()
        complete[0] += 1
        return replace(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", replace_or_die)
        export(run, to, out)
