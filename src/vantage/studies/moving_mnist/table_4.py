"""Table 4 of InfoMin (Tian et al., arXiv 2005.10243): what two views of a clip share decides what is learned."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from vantage.composition.codec import encode
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import DataError, UserError
from vantage.progress import ending, task
from vantage.storage.files import result_file, write_json, write_text
from vantage.storage.provenance import versions
from vantage.storage.results import ResultsFile
from vantage.studies.moving_mnist.clips import Clips, Scene
from vantage.studies.moving_mnist.contrast import ClipContrast
from vantage.studies.moving_mnist.evaluation import LinearHeads, SupervisedTraining
from vantage.studies.moving_mnist.image_set import (
    ImageSet,
    check_backgrounds,
    check_digits,
    load_backgrounds,
    load_digits,
)
from vantage.studies.moving_mnist.networks import ClipEncoder
from vantage.studies.moving_mnist.rows import (
    Bench,
    ContrastiveRow,
    RowMeasures,
    SupervisedRow,
    TableRow,
    UntrainedRow,
    chance,
    stored_measures,
)
from vantage.studies.moving_mnist.shared_factors import COMBINATIONS
from vantage.studies.moving_mnist.show import picture
from vantage.studies.moving_mnist.table_4_report import Report, table_4_report
from vantage.studies.moving_mnist.training import ClipTraining
from vantage.training.folder.writer import only_writer

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["InfoMinTable4", "reproduce"]

_TEST = 0x7E57  # the seed of test clips


@dataclass(frozen=True)
class InfoMinTable4:
    """Table 4 of InfoMin: what the views of a clip share decides what is learned from it (arXiv 2005.10243).

    A digit moves over a photograph. The first view is the start of the clip; the second is a single image that shares
    some of the digit, its position and the background with a later frame. For each of the seven combinations a network
    is trained by contrast and evaluated by linear layers that predict the digit, background and position of single
    frames. The baselines are an untrained network, networks trained with labels, and chance. The defaults are the
    paper's: 200 epochs of 60,000 clips take days on a CPU, `--epochs 2 --clips 6400` a few minutes per row.
    """

    name: ClassVar[str] = "infomin-table-4"

    scene: Scene = Scene()
    """The clips."""

    background_side: int = 96
    """Side in pixels to which backgrounds are scaled before cropping; the default is that of STL-10."""

    digit_classes: int = 10
    """Number of digit classes; the first ones of the set are used."""

    background_classes: int = 10
    """Number of background classes; the first ones of the set are used. STL-10 has ten."""

    encoder: ClipEncoder = ClipEncoder()
    """The networks."""

    temperature: float = 0.1
    """τ: what cosines are divided by (our choice)."""

    course: ClipTraining = ClipTraining()
    """How networks are trained, both by contrast and with labels."""

    heads: LinearHeads = field(default_factory=LinearHeads)
    """How frozen networks are evaluated."""

    test_frames: int = 0
    """Number of test frames; 0: one for every test digit."""

    information_clips: int = 1_280
    """Number of test clips on which I_NCE is measured, at least a batch."""

    repetitions: int = 1
    """Number of repetitions, with seeds 0, 1, …; more may be added later."""

    def __post_init__(self) -> None:
        if self.repetitions < 1 or min(self.test_frames, self.information_clips) < 0:
            raise UserError(
                f"{self.name}: repetitions is {self.repetitions}, test_frames {self.test_frames} and information_clips"
                f" {self.information_clips}; give at least 1 repetition, and nothing below 0"
            )
        if min(self.digit_classes, self.background_classes) < 2:
            raise UserError(f"{self.name}: with fewer than 2 classes there is nothing to distinguish; give at least 2")

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """The rows to train, in the order of the table."""
        return (*map(ContrastiveRow, COMBINATIONS), UntrainedRow(), SupervisedRow())

    def check(self, sources: Mapping[str, Source]) -> None:
        """Raises `DataError` for images without labels, for too few classes, for a test set with other classes, and for
        digits of another size."""
        for part in ("digits", "test_digits"):
            check_digits(sources[part], self.digit_classes, part.replace("_", " "))
        for part in ("backgrounds", "test_backgrounds"):
            check_backgrounds(sources[part], self.background_classes, part.replace("_", " "))
        for part, count in (("digits", self.digit_classes), ("backgrounds", self.background_classes)):
            train, test = (sources[name].classes[:count] for name in (part, f"test_{part}"))
            if train != test:
                raise DataError(
                    f"the {part} have the classes {', '.join(train[:4])} …, but the test {part} have"
                    f" {', '.join(test[:4])} …: the two must be parts of one set"
                )

    def __call__(
        self, sources: Mapping[str, Source], results: ResultsFile[RowMeasures], work: Work
    ) -> "tuple[Report, Image]":
        """Train and measure every row and seed that is not stored yet."""
        pairs = [(row, seed) for seed in range(self.repetitions) for row in self.rows]
        missing = [(row, seed) for row, seed in pairs if _key(row.name, seed) not in results]
        image_sets = self._image_sets(sources, work)
        total = sum(row.work(self._bench(image_sets, seed)) for row, seed in pairs)
        completed_frames = total - sum(row.work(self._bench(image_sets, seed)) for row, seed in missing)
        if missing:
            work.progress.start("frames", total, completed_frames)
        with ending(work.progress):
            for row, seed in missing:
                bench, key = self._bench(image_sets, seed), _key(row.name, seed)
                start, frames_before = time.perf_counter(), completed_frames

                def report_frames(frames: int, note: str, frames_before: int = frames_before, name: str = key) -> None:
                    work.progress.advance(frames_before + frames, f"{name}: {note}")

                measures = row(bench, seed, report_frames)
                results.add(key, RowMeasures(row.name, seed, measures, round(time.perf_counter() - start, 1)))
                completed_frames += row.work(bench)
                work.progress.line(f"{key}: {_words(measures)}")
        bench = self._bench(image_sets, 0)
        rows = {
            row.name: [results[_key(row.name, seed)].measures for seed in range(self.repetitions)] for row in self.rows
        }
        return table_4_report({**rows, "chance": [chance(bench)]}, self._notes()), picture(bench.train)

    def _image_sets(self, sources: Mapping[str, Source], work: Work) -> dict[str, ImageSet]:
        device, image_sets = work.resolved_device(), {}
        with task(work.progress, "reading images", len(sources)):
            for number, (name, source) in enumerate(sources.items()):
                if "digits" in name:
                    image_set = load_digits(source, self.digit_classes, work.num_workers)
                else:
                    image_set = load_backgrounds(
                        source, self.background_side, self.background_classes, work.num_workers
                    )
                image_sets[name] = image_set.to(device)
                work.progress.advance(number + 1, name.replace("_", " "))
        return image_sets

    def _bench(self, image_sets: Mapping[str, ImageSet], seed: int) -> Bench:
        """Test clips are the same for every seed."""
        train = Clips(image_sets["digits"], image_sets["backgrounds"], self.scene, seed)
        test = Clips(image_sets["test_digits"], image_sets["test_backgrounds"], self.scene, _TEST)
        return Bench(
            train,
            test,
            ClipContrast(self.encoder, self.temperature, self.course),
            SupervisedTraining(self.encoder.frame, self.course),
            self.heads,
            self.test_frames,
            self.information_clips,
        )

    def _notes(self) -> tuple[str, ...]:
        """Notes below the table."""
        course = self.course
        return (
            f"Ours: seeds {self.repetitions} (mean ± standard deviation), epochs {course.epochs}, clips of an epoch"
            f" {course.clips or 'one for each digit'}, batch {course.batch_size}, frames seen {self.scene.seen}, second"
            f" view of frame {self.scene.last}. Paper: epochs 200, clips 60,000, batch 128, frames seen 10, second"
            " view of frame 20, backgrounds of STL-10.",
            f"I_NCE: on test clips, at most log {course.batch_size}.",
            "Chance: always the most common training class, always the middle.",
        )


def reproduce(
    table: InfoMinTable4, sources: Mapping[str, Source], folder: Path, work: Work | None = None
) -> tuple[Report, tuple[Path, ...]]:
    """Reproduce the table from `digits`, `test_digits`, `backgrounds` and `test_backgrounds`, and write it to a folder
    as .md, .csv and .json, with a picture (.png). Returns the table and these files.

    Rows that the folder holds from an earlier call with the same settings and images are not measured again. Raises
    `UserError` if they were measured with other settings or images, or if the images do not fit.
    """
    table.check(sources)
    with only_writer(folder, "reproducing in"):
        settings, images = encode(table, "entry"), {name: source.fingerprint() for name, source in sources.items()}
        others = {name: value for name, value in settings.items() if name != "repetitions"}  # more may be added
        kept_as = {"entry": table.name, "settings": {**others, "seeds": "any"}, "images": images}
        results = stored_measures(folder, kept_as)
        report, image = table(sources, results, work or Work())
        record = {
            **{"entry": table.name, "title": report.title, "settings": settings, "images": images},
            **{"versions": versions(), "rows": [dict(row) for row in report.numbers], "notes": list(report.notes)},
        }
        files = tuple(folder / f"{table.name}{ending}" for ending in (".md", ".csv", ".json", ".png"))
        write_text(files[0], report.markdown())
        write_text(files[1], report.csv())
        write_json(files[2], record)
        with result_file(files[3], "the picture") as file:
            image.save(file, "PNG", optimize=True)
    return report, files


def _key(row: str, seed: int) -> str:
    return f"{row}, seed {seed}"


def _words(measures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {round(value, 2) + 0.0:.2f}" for name, value in measures.items())
