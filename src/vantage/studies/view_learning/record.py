"""What the folder of a learning records about it: settings, origin, and how far it is."""

import json
from pathlib import Path

from vantage.composition.codec import decode, encode
from vantage.data import Source
from vantage.errors import UserError
from vantage.storage.files import write_json, write_text
from vantage.storage.metrics import read_metrics
from vantage.storage.provenance import provenance, read_provenance
from vantage.storage.strangers import check_run_folder
from vantage.studies.view_learning.learning import ViewLearning
from vantage.training.folder.same_run import conflicts

__all__ = ["FILE", "check_same_settings", "epochs_done", "read_learning", "write_settings"]

FILE = "view_learning.json"
"""Name of the file with the settings of a learning."""

_SCHEMA = 1
_IGNORED_FIELDS = ("data.", "device")


def read_learning(folder: Path) -> ViewLearning:
    """The settings of the learning in a folder; raises `UserError` if there are none."""
    check_run_folder(folder)
    path = folder / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{folder} holds no learned views: there is no {FILE} in it") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise UserError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
        raise UserError(f"{path} is of another schema than {_SCHEMA}: read it with the version that wrote it")
    return decode(content.get("learning"), ViewLearning, "learning")


def epochs_done(folder: Path) -> tuple[int, int]:
    """How many epochs of the learning in a folder are done, and of how many; (0, 0) if it holds no learning."""
    if not (folder / FILE).is_file():
        return 0, 0
    rows = read_metrics(folder)
    return (rows[-1].get("epoch", 0) if rows else 0), read_learning(folder).epochs


def check_same_settings(previous: ViewLearning, learning: ViewLearning, folder: Path) -> None:
    """Raises `UserError` that names the differences; the location of the images, how they are loaded and the device may
    differ."""
    if words := conflicts(previous, learning, _IGNORED_FIELDS, "there"):
        raise UserError(f"{folder} holds a learning of views with other settings: {words}. Give another folder")


def write_settings(learning: ViewLearning, folder: Path, source: Source, resuming: bool) -> None:
    """Write the settings and origin of a learning, or check that a resumed one has the same images."""
    origin = provenance(source.fingerprint(), len(source))
    earlier = read_provenance(folder) if resuming else []
    if earlier and earlier[0]["data"] != origin["data"]:
        raise UserError(
            f"the learning in {folder} began on {earlier[0]['data']['images']:,} images, and these are {len(source):,}"
            " or others: give the same images back"
        )
    if not resuming:
        record = {"schema": _SCHEMA, "learning": encode(learning)}
        write_text(folder / FILE, json.dumps(record, indent=1, allow_nan=False) + "\n")
    write_json(folder / "provenance.json", [*earlier, origin])
