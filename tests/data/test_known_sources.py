"""Sets that are opened by name: torchvision's, and ImageNet's two parts as one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from kept_images import CLASSES, IMAGES, LABELS, as_png

from vantage.data import labels_of, open_source
from vantage.data.sources.torchvision_sets import TorchvisionSet, read_cifar
from vantage.errors import DataError


def test_torchvision_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="choose one of CIFAR10, CIFAR100"):
        open_source("torchvision:Cifar", cache=tmp_path)
    with pytest.raises(DataError, match="its parts are train, test"):
        open_source("torchvision:CIFAR10#valid", cache=tmp_path)


def test_torchvision_mnist_from_files_on_disk(tmp_path: Path) -> None:
    raw = tmp_path / "sets" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    gray, labels = IMAGES[..., 0], LABELS.astype(np.uint8)
    for part in ("train", "t10k"):
        head = np.array([2051, *gray.shape], ">i4").tobytes()
        (raw / f"{part}-images-idx3-ubyte").write_bytes(head + gray.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(np.array([2049, 9], ">i4").tobytes() + labels.tobytes())
    source = open_source("torchvision:MNIST#test", cache=tmp_path)
    assert isinstance(source, TorchvisionSet) and len(source) == 9 and len(source.classes) == 10
    assert labels_of(source).tolist() == LABELS.tolist()
    assert torch.equal(source.image(3), torch.from_numpy(gray[3]).expand(3, -1, -1))
    assert source.fingerprint() == open_source("torchvision:MNIST#test", cache=tmp_path).fingerprint()


def test_training_and_validation_images_joined(tmp_path: Path) -> None:
    """DTD has a list of each; in its files on disk each class has a folder."""
    root = tmp_path / "sets" / "dtd" / "dtd"
    for part, numbers in (("train", (0, 4)), ("val", (1, 8, 5)), ("test", (2,))):
        names = [f"{CLASSES[LABELS[number]]}/{number}.png" for number in numbers]
        for number, name in zip(numbers, names, strict=True):
            (root / "images" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "images" / name).write_bytes(as_png(IMAGES[number]))
        (root / "labels").mkdir(exist_ok=True)
        (root / "labels" / f"{part}1.txt").write_text("\n".join((*names, "owl/8.png") if part == "train" else names))
    source = open_source("torchvision:DTD#trainval", cache=tmp_path)
    assert source.classes == CLASSES and labels_of(source).tolist() == [0, 1, 2, 0, 2, 1]
    assert torch.equal(source.image(5), torch.from_numpy(IMAGES[5]).permute(2, 0, 1))


@pytest.mark.parametrize(
    "name, folder, label_bytes", [("CIFAR10", "cifar-10-batches-bin", 1), ("CIFAR100", "cifar-100-binary", 2)]
)
def test_cifar_from_binary_files_on_disk(name: str, folder: str, label_bytes: int, tmp_path: Path) -> None:
    root = tmp_path / "sets" / folder
    root.mkdir(parents=True)
    images = np.random.default_rng(1).integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)
    rows = b"".join(bytes([9] * (label_bytes - 1) + [n % 3]) + image.tobytes() for n, image in enumerate(images))
    files = {"CIFAR10": ["test_batch.bin"], "CIFAR100": ["test.bin"]}[name]
    (root / files[0]).write_bytes(rows)
    (root / {"CIFAR10": "batches.meta.txt", "CIFAR100": "fine_label_names.txt"}[name]).write_text("cat\ndog\nowl\n")
    source = open_source(f"torchvision:{name}#test", cache=tmp_path)
    assert source.classes == CLASSES and labels_of(source).tolist() == [0, 1, 2, 0]
    assert torch.equal(source.image(1), torch.from_numpy(images[1]))
    (root / files[0]).write_bytes(rows[:-1])
    with pytest.raises(DataError, match="not a multiple of"):
        read_cifar((root / files[0],), label_bytes, CLASSES)
