"""Readers of images, annotations, embeddings and other files that need no training, as targets of `fuzzing.py`."""

import functools
import io
import json
from collections.abc import Callable
from pathlib import Path

import mutations
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from fuzz_targets import Target
from good_files import SET, VOC, coco, tar
from PIL import Image
from safetensors.torch import save
from tar_shards import png
from tiny import tiny_run

from vantage.composition.assignments import assign
from vantage.data import Arrays, Source, marks_of, open_source
from vantage.data.sources.masked import open_masked
from vantage.encoders.weights import fit_weights
from vantage.encoding import Work
from vantage.errors import UnreadableImage
from vantage.evaluate.protocols.detection import open_annotated
from vantage.frozen.embedding import facts_of, write_embeddings
from vantage.frozen.embedding_parts import write_embedding_parts
from vantage.frozen.encoder import random_encoder
from vantage.recipes import moco_v2
from vantage.storage.rows_file import open_rows
from vantage.views.colors.learned import learned_space


def open_images(path: str, cache: Path) -> None:
    """Open images, and read everything that a source offers."""
    source: Source = open_source(path, cache=cache, at_least=1, max_pixels=10_000)
    marks_of(source)
    source.fingerprint()
    for number in {0, 1, len(source) // 2, len(source) - 1} - {len(source)}:
        source.name(number)
        source.label(number)
        try:
            source.image(number)
        except UnreadableImage:
            pass


def targets_of_sets(folder: Path) -> dict[str, Target]:
    """The targets that need no training: sets of images, annotations, embeddings and others."""
    for part in ("voc/JPEGImages", "images", "masks", "voc/ImageSets/Main", "voc/Annotations"):
        (folder / part).mkdir(parents=True)
    (folder / "voc" / "ImageSets" / "Main" / "train.txt").write_text("1\n2\n")
    for number in (1, 2):
        (folder / "voc" / "Annotations" / f"{number}.xml").write_bytes(VOC)
        picture = Image.open(io.BytesIO(png(number, 40)))
        picture.save(folder / "voc" / "JPEGImages" / f"{number}.jpg")
        picture.save(folder / "images" / f"{number}.png")
        mask = Image.fromarray(np.eye(40, dtype=np.uint8), "P")
        mask.putpalette(bytes(range(256)) * 3)
        mask.save(folder / "masks" / f"{number}.png")
    (folder / "voc" / "ImageSets" / "Main" / "one.txt").write_text("2\n")
    return _sources(folder) | _others(folder) | _annotation_files(folder) | _embedding_files(folder)


def _sources(folder: Path) -> dict[str, Target]:
    pixels = np.arange(4 * 6 * 5 * 3, dtype=np.uint8).reshape(4, 6, 5, 3)
    archive, plain, table = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(archive, images=pixels, labels=np.array(["a", "b", "a", "c"]))
    np.save(plain, pixels)
    cells = [{"bytes": png(number), "path": "a.png"} for number in range(4)]
    pq.write_table(pa.table({"image": cells, "label": [0, 1, 2, 0]}), table, row_group_size=2)
    lines = b"# comment\nimages/1.png dog\nimages/2.png\tcat\n"
    marks = b"name,dog,cat,owl\nimages/1.png,1,0,1\nimages/2.png,0,1,1\n"

    def open_source_at(prefix: str = "", suffix: str = "") -> Callable[[Path, Path], object]:
        return lambda path, cache: open_images(f"{prefix}{path}{suffix}", cache)

    return {
        "npz": Target("a.npz", archive.getvalue(), mutations.damage_bytes, open_source_at()),
        "npy": Target("a.npy", plain.getvalue(), mutations.damage_array, open_source_at()),
        "parquet": Target("a.parquet", table.getvalue(), mutations.damage_bytes, open_source_at()),
        "tar": Target("a.tar", tar(), mutations.damage_tar, open_source_at()),
        "shards": Target(
            "b.tar",
            tar(),
            mutations.damage_tar,
            lambda path, cache: open_images(f"{path.parent}/{{b.tar,b.tar}}", cache),
        ),
        "list": Target("list.txt", lines, mutations.damage_words, open_source_at()),
        "table": Target("table.csv", marks, mutations.damage_words, open_source_at()),
        "coco": Target("coco.json", coco(), mutations.damage_tree, open_source_at("crops:", f"#{folder / 'images'}")),
        "voc": Target(
            "voc/Annotations/1.xml",
            VOC,
            mutations.damage_words,
            lambda path, cache: open_images(f"{folder}/voc#train", cache),
        ),
        "voc list": Target(
            "voc/ImageSets/Main/train.txt",
            b"1\n2\n",
            mutations.damage_words,
            lambda path, cache: open_images(f"{folder}/voc#train", cache),
        ),
        "masks": Target(
            "masks/1.png",
            (folder / "masks" / "1.png").read_bytes(),
            mutations.damage_bytes,
            lambda path, cache: _masks(folder),
        ),
    }


def _others(folder: Path) -> dict[str, Target]:
    state = {
        f"layer{n}.weight": torch.zeros(2, 3, dtype=kind) for n, kind in enumerate((torch.float32, torch.bfloat16))
    }
    rows = io.BytesIO()
    np.save(rows, np.zeros((5, 4), np.float32))
    return {
        "outside weights": Target(
            "w.safetensors", save(state, {"a": "b"}), mutations.damage_header, lambda path, cache: _weights(path)
        ),
        "learned views": Target(
            "v.safetensors",
            _learned_space(folder),
            mutations.damage_header,
            lambda path, cache: learned_space(path).convert(torch.rand(1, 3, 4, 4)),
        ),
        "cached features": Target("f.npy", rows.getvalue(), mutations.damage_array, lambda path, cache: _rows(path)),
        "set": Target("set.txt", SET, mutations.damage_words, lambda path, cache: _set(path)),
    }


def _annotation_files(folder: Path) -> dict[str, Target]:
    """Annotations for detectors: boxes, masks as polygons and as run lengths, keypoints."""
    content = json.loads(coco())
    polygon = [[1.0, 1.0, 20.0, 1.0, 20.0, 30.0]]
    for note, mask in zip(
        content["annotations"], (polygon, polygon, {"size": [40, 40], "counts": [400, 80, 1120]}), strict=True
    ):
        note |= {"segmentation": mask, "area": 400.0, "keypoints": [5, 5, 2, 9, 9, 1]}
    for category in content["categories"]:
        category["keypoints"] = ["nose", "tail"]
    whole = VOC.replace(b"<ymax>20", b"<xmax>30</xmax><ymin>2</ymin><ymax>20")
    whole = whole[: whole.index(b"<object><name>cat")] + b"</annotation>"
    return {
        "coco instances": Target(
            "instances.json",
            json.dumps(content).encode(),
            mutations.damage_tree,
            lambda path, cache: _instances(f"{path}#{folder / 'images'}"),
        ),
        "voc instances": Target(
            "voc/Annotations/2.xml", whole, mutations.damage_words, lambda path, cache: _instances(f"{folder}/voc#one")
        ),
    }


def _instances(path: str) -> None:
    source = open_annotated(path, max_pixels=10_000)
    source.fingerprint()
    for number in range(len(source)):
        source.instances(number)
        source.size(number)
        if source.has_masks:
            source.masks(number)
        try:
            source.image(number)
        except UnreadableImage:
            pass


def _embedding_files(folder: Path) -> dict[str, Target]:
    """The files from which a stopped embedding continues: a finished part, and the facts beside a draft."""
    encoder, work = random_encoder(tiny_run()), Work("cpu", num_workers=1, cache=folder / "cache")
    source = Arrays(np.arange(4 * 6 * 5 * 3, dtype=np.uint8).reshape(4, 6, 5, 3), np.array([0, 1, 2, 0]), "four")
    (part,) = write_embedding_parts(encoder, source, folder / "embedded", work).iterdir()
    rows = write_embeddings(encoder, source, folder / "good.npy", work).read_bytes()
    facts = {**facts_of(encoder, source, work), "shape": [4, encoder.width], "dtype": "torch.float32"}

    def go_on(note: Path, cache: Path) -> None:
        (folder / "e.npy").unlink(missing_ok=True)
        (folder / "e.npy.draft").write_bytes(rows[: len(rows) - 8 * encoder.width])
        write_embeddings(encoder, source, folder / "e.npy", work)
        if (folder / "e.npy").read_bytes() != rows:
            raise AssertionError("other embeddings")

    return {
        "embeddings": Target(
            f"embedded/{part.name}",
            part.read_bytes(),
            mutations.damage_bytes,
            lambda path, cache: write_embedding_parts(encoder, source, path.parent, work),
        ),
        "embedding drafts": Target(
            "e.npy.draft.json", json.dumps({**facts, "rows": 2}).encode(), mutations.damage_tree, go_on
        ),
    }


def _learned_space(folder: Path) -> bytes:
    from vantage.views.colors.flows import Flow
    from vantage.views.colors.learned import write_learned
    from vantage.views.colors.spaces import YCbCr
    from vantage.views.colors.statistics import Statistics

    flow = Flow()
    write_learned(folder / "good", flow, flow.build(), YCbCr(), Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    return (folder / "good").read_bytes()


def _masks(folder: Path) -> None:
    source = open_masked(f"{folder / 'images'}#{folder / 'masks'}", max_pixels=10_000)
    source.fingerprint()
    source.image(0)
    try:
        source.mask(0)
    except UnreadableImage:
        pass


def _weights(path: Path) -> None:
    network = torch.nn.Sequential()
    for number, kind in enumerate((torch.float32, torch.bfloat16)):
        network.add_module(f"layer{number}", torch.nn.Linear(3, 2, bias=False, dtype=kind))
    fit_weights(network, path)


def _rows(path: Path) -> None:
    if (rows := open_rows(path, 5)) is not None:  # a damaged file is made again
        rows(torch.tensor([0, 4]))
        rows.part(0, 5)
        rows.memory_map()


def _set(path: Path) -> None:
    for line in path.read_bytes().decode("utf-8", "surrogateescape").split("\n"):
        _assign(line)


@functools.lru_cache(maxsize=64)  # most lines are not damaged
def _assign(line: str) -> None:
    assign(moco_v2(), [line])
