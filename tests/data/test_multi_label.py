"""Images that show several classes: table files and folders of PASCAL VOC, as they are and as they are not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vantage.data import Arrays, MultiLabelImages, SourceSubset, labels_of, marks_of, open_source
from vantage.data.sources.renumbered import RenumberedSource
from vantage.data.sources.source import marks_in
from vantage.data.splits import split, with_labels
from vantage.errors import DataError


def pictures(folder: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 6), (20 * number, 80, 90)).save(folder / name)


def table(folder: Path, text: str) -> Path:
    pictures(folder, ["a.jpg", "in/b.jpg", "c.jpg"])
    (folder / "shown.csv").write_text(text)
    return folder / "shown.csv"


def voc(folder: Path, lists: bool = True) -> Path:
    """Three images of a set like VOC2007, with the lists of each class or without."""
    root = folder / "VOC2007"
    pictures(root / "JPEGImages", ["000001.jpg", "000002.jpg", "000003.jpg"])
    main, boxes = root / "ImageSets" / "Main", root / "Annotations"
    main.mkdir(parents=True)
    boxes.mkdir()
    (main / "trainval.txt").write_text("000001\n000002\n")
    (main / "test.txt").write_text("000003\n")
    if lists:
        (main / "dog_trainval.txt").write_text("000001  1\n000002  0\n")
        (main / "cat_trainval.txt").write_text("000001 -1\n000002  1\n")
    objects_of_image = {"000001": [("dog", 0), ("dog", 1)], "000002": [("dog", 1), ("cat", 0)], "000003": [("cat", 1)]}
    for name, objects in objects_of_image.items():
        inside = "".join(f"<object><name>{n}</name><difficult>{d}</difficult></object>" for n, d in objects)
        (boxes / f"{name}.xml").write_text(f"<annotation>{inside}</annotation>")
    return root


def test_a_table_marks_what_images_show(tmp_path: Path) -> None:
    file = table(tmp_path, "image,classes\n\n# a remark\na.jpg,dog,person\nin/b.jpg, cat?,dog?,dog\nc.jpg\n")
    source = open_source(file)
    assert isinstance(source, MultiLabelImages) and source.classes == ("cat", "dog", "person")
    assert marks_of(source).tolist() == [[-1, 1, 1], [0, 1, -1], [-1, -1, -1]]
    assert (source.name(1), source.label(1), tuple(source.image(1).shape)) == ("in/b.jpg", None, (3, 6, 9))
    assert labels_of(source).tolist() == [-1, -1, -1]


def test_the_fingerprint_follows_the_marks(tmp_path: Path) -> None:
    one = open_source(table(tmp_path / "1", "a.jpg,dog\nc.jpg,cat")).fingerprint()
    same = open_source(table(tmp_path / "2", "a.jpg,dog\nc.jpg,cat\n")).fingerprint()
    other = open_source(table(tmp_path / "3", "a.jpg,dog\nc.jpg,cat?")).fingerprint()
    assert one == same != other


@pytest.mark.parametrize(
    "text, message",
    [
        ("a.jpg,dog\nb,cat\n", "1 bad line: line 2: 'b,cat'"),
        ("image\n", "names no images"),
        ("a.jpg\nc.jpg\n", "names no class: .*, or, of images without classes, make it a list: a file .txt"),
        ("a.jpg,dog\na.jpg,cat\n", "names 1 image twice, such as a.jpg on lines 1 and 2: write"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_source(table(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "image,dog,cat,person\na.jpg,1,0,1\nin/b.jpg,0,1,0\nc.jpg,0,0,0\n",
        "image,dog,cat,person\na.jpg,1.0,0.0,1.0\nin/b.jpg,0.0,1.0,0.0\nc.jpg,0.0,0.0,0.0\n",
        "image, dog, cat, person\na.jpg,True,False,True\nin/b.jpg,False,True,False\nc.jpg,False,False,False\n",
        "path,person,cat,dog\na.jpg,1,-1,1\nin/b.jpg,-1,1,-1\nc.jpg,-1,-1,-1\n",
        "\ufeff# of a spreadsheet\nimage,dog,cat,person\na.jpg,1,,1\nin/b.jpg,,1,\nc.jpg,,,\n",
    ],
)
def test_a_column_of_flags_for_each_class(tmp_path: Path, text: str) -> None:
    by_flag = open_source(table(tmp_path / "flags", text))
    by_name = open_source(table(tmp_path / "names", "a.jpg,dog,person\nin/b.jpg,cat\nc.jpg\n"))
    assert by_flag.classes == ("cat", "dog", "person") and by_flag.fingerprint() == by_name.fingerprint()
    assert marks_of(by_flag).tolist() == [[-1, 1, 1], [1, -1, -1], [-1, -1, -1]]


def test_a_flag_that_is_never_set_is_a_class(tmp_path: Path) -> None:
    source = open_source(table(tmp_path, "image,dog,cat\na.jpg,1,0\nc.jpg,1,0\n"))
    assert source.classes == ("cat", "dog") and marks_of(source).tolist() == [[-1, 1], [-1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a.jpg,1,0,1\nc.jpg,0,0,1\n",
            r"3 columns of flags \(line 1: 'a.jpg,1,0,1'\), but no first line that names",
        ),
        ("image,dog\na.jpg,1,0\nc.jpg,0,1\n", r"its heading \('image,dog'\) does not name 2 different classes"),
        ("image,dog,dog\na.jpg,1,0\nc.jpg,0,1\n", "does not name 2 different classes"),
        ("image,dog,cat\na.jpg,1,0\nc.jpg,-1,1\n", "with 0 and -1 in them, one of which may mean .* difficult"),
        ("image,dog,cat\na.jpg,1,0\nc.jpg,,1\n", "with 0 and nothing in them"),
        (
            "image,split,dog,cat\na.jpg,train,1,0\nc.jpg,test,0,1\n",
            r"of flags \(dog, cat\) beside .* \(split\)",
        ),
        (
            "image,class,difficult\na.jpg,dog,0\nc.jpg,cat,1\n",
            r"flags \(difficult\) beside .* \(class\): keep only",
        ),
        (
            "image,class,width\na.jpg,dog,640\nin/b.jpg,cat,\nc.jpg,cat,480\n",
            r"numbers \(width\) beside .* \(class\): keep",
        ),
        ("image,dog,cat,cow\na.jpg,0,2,0\nc.jpg,3,1,4\n", r"numbers where names .* \(line 2: 'a.jpg,0,2,0'\): write"),
        ("a.jpg,dog,1,1\nc.jpg,cat\n", "numbers where names of classes are expected"),
    ],
)
def test_flags_that_are_not_clear_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_source(table(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("image,digit\na.jpg,0\nc.jpg,1\n", ("0", "1")),
        ("a.jpg,7,3\nc.jpg,1,0\n", ("0", "1", "3", "7")),
        ("a.jpg,1\nin/b.jpg,0,1\nc.jpg,0\n", ("0", "1")),
        ("image,first,second\na.jpg,dog,cat\nc.jpg,dog,\n", ("cat", "dog")),
        ("image,first,second,none\na.jpg,7,8,\nc.jpg,9,,\n", ("7", "8", "9")),
    ],
)
def test_numbers_may_be_names_of_classes(tmp_path: Path, text: str, classes: tuple[str, ...]) -> None:
    assert open_source(table(tmp_path, text)).classes == classes


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a.jpg,dog\nin/b.jpg,cat\nc.jpg,dog\n", (1, 0, 1)),
        ("image,cat,dog\na.jpg,0,1\nin/b.jpg,1,0\nc.jpg,0,1\n", (1, 0, 1)),
        ("a.jpg,dog\nin/b.jpg\nc.jpg,cat\n", None),
        ("a.jpg,dog\nin/b.jpg,cat?\nc.jpg,cat\n", None),
        ("a.jpg,dog\nin/b.jpg,cat,dog\nc.jpg,cat\n", None),
    ],
)
def test_a_table_with_one_class_for_each_image_is_labeled(
    tmp_path: Path, text: str, labels: tuple[int, ...] | None
) -> None:
    """Only then do protocols that need one class per image apply."""
    source = open_source(table(tmp_path, text))
    assert source.classes == ("cat", "dog") and [source.name(n) for n in range(3)] == ["a.jpg", "in/b.jpg", "c.jpg"]
    if labels is None:
        assert marks_in(source) is not None and source.label(0) is None
        return
    assert marks_in(source) is None and tuple(source.label(n) for n in range(3)) == labels
    assert marks_of(source).tolist() == [[1 if c == label else -1 for c in range(2)] for label in labels]
    assert with_labels(source) and torch.equal(source.image(1), open_source(tmp_path).image(2))


def test_voc_is_read_from_its_lists_or_its_boxes(tmp_path: Path) -> None:
    for lists in (True, False):
        source = open_source(f"{voc(tmp_path / str(lists), lists)}#trainval")
        assert isinstance(source, MultiLabelImages) and source.classes == ("cat", "dog")
        assert marks_of(source).tolist() == [[-1, 1], [1, 0]]
        assert source.name(0) == "JPEGImages/000001.jpg" and source.image(0).shape == (3, 6, 9)


def test_an_image_that_a_split_of_voc_names_twice_is_refused(tmp_path: Path) -> None:
    """It counted twice and, without lists of classes, had the marks of another image, or none."""
    for lists in (True, False):
        root = voc(tmp_path / str(lists), lists)
        split = root / "ImageSets" / "Main" / "trainval.txt"
        split.write_text(f"{split.read_text()}\n000001\n")
        with pytest.raises(DataError, match=r"trainval\.txt names 1 image twice, such as 000001: write each on one"):
            open_source(f"{root}#trainval")


def test_voc_wants_a_split(tmp_path: Path) -> None:
    root = voc(tmp_path)
    for part in ("", "#train"):
        with pytest.raises(DataError, match=r"PASCAL VOC: name a split after # \(test, trainval\)"):
            open_source(f"{root}{part}")
    assert len(open_source(f"{root}#JPEGImages")) == 3
    (root / "ImageSets" / "Main" / "dog_trainval.txt").write_text("000001 1\n")
    with pytest.raises(DataError, match="has no 1, 0 or -1 for 1 image of the split, such as 000002"):
        open_source(f"{root}#trainval")
    with pytest.raises(DataError, match="names no class"):
        (root / "ImageSets" / "Main" / "empty.txt").write_text("\n")
        (root / "Annotations" / "000003.xml").write_text("<annotation/>")
        open_source(f"{root}#test", at_least=1)


def test_marks_go_through_subsets_and_other_orders_of_classes(tmp_path: Path) -> None:
    source = open_source(table(tmp_path, "a.jpg,dog\nin/b.jpg,cat?\nc.jpg,dog,cat\n"))
    part = SourceSubset(source, [2, 1])
    assert marks_of(part).tolist() == [[1, 1], [0, -1]]
    other = RenumberedSource(part, ("bird", "dog"))
    assert other.classes == ("bird", "dog", "cat") and marks_of(other).tolist() == [[-1, 1, 1], [-1, -1, 0]]
    assert marks_of(SourceSubset(other, [1])).tolist() == [[-1, -1, 0]]


def test_one_class_an_image_is_marked_by_its_label() -> None:
    arrays = Arrays(np.zeros((4, 8, 8, 3), np.uint8), np.array([2, 0, 1, 2]), "four")
    assert marks_in(arrays) is None and marks_in(SourceSubset(arrays, [1])) is None
    assert marks_in(RenumberedSource(arrays, arrays.classes)) is None
    assert marks_of(SourceSubset(arrays, [3, 1])).tolist() == [[-1, -1, 1], [1, -1, -1]]


def test_what_needs_one_class_an_image_says_so(tmp_path: Path) -> None:
    source = open_source(table(tmp_path, "a.jpg,dog\nin/b.jpg,cat?\nc.jpg,dog,cat\n"))
    say = r"needs one class per image, but these images may show several, such as in/b\.jpg \(cat\?\): "
    with pytest.raises(ValueError, match=say):
        with_labels(source)
    with pytest.raises(ValueError, match=r"such as c\.jpg \(cat, dog\): "):
        with_labels(SourceSubset(source, [0, 2]))


def test_a_share_of_marked_images_is_held_out(tmp_path: Path) -> None:
    pictures(tmp_path, [f"{n}.jpg" for n in range(20)])
    (tmp_path / "t.csv").write_text("".join(f"{n}.jpg,dog\n" for n in range(20)))
    train, test = split(open_source(tmp_path / "t.csv"))
    assert (len(train), len(test)) == (16, 4)
    names = {part.name(n) for part in (train, test) for n in range(len(part))}
    assert len(names) == 20 and torch.equal(marks_of(test), torch.ones(4, 1, dtype=torch.int8))
