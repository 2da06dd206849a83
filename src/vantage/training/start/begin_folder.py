"""What a run writes and says when it begins or resumes, once its folder is locked."""

from pathlib import Path
from typing import Any

from vantage.progress import Progress
from vantage.storage.files import write_json
from vantage.storage.provenance import provenance, read_provenance
from vantage.training.folder import settings
from vantage.training.session import Session
from vantage.training.start.disk import tell_disk

__all__ = ["begin_folder"]


def begin_folder(
    session: Session,
    folder: Path,
    data: dict[str, Any],
    resumed: bool,
    origin: dict[str, Any] | None,
    progress: Progress,
) -> None:
    """Write the provenance (with what a warm start took) and the settings, and say how much disk the checkpoints will
    take. Resuming only adds a record.

    The settings come last, since they make the folder a run: one that is resumed must know where it started from."""
    record, records = provenance(data["fingerprint"], data["images"]), read_provenance(folder) if resumed else []
    write_json(folder / "provenance.json", [*records, record if origin is None else {**record, "init": origin}])
    if not resumed:
        settings.write(session.run, folder)
    tell_disk(session.run, session.learner, folder, progress)
