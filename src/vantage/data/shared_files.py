"""Test images whose files are training images too."""

from vantage.data.sources.source import Source, files_of, labels_of, marks_in
from vantage.errors import UserError

__all__ = ["shared_files_in_words"]


def shared_files_in_words(train: Source, test: Source) -> str:
    """How many test images are files that are training images too, as the end of a phrase; "" if none is. Raises
    `UserError` if all of them are."""
    number_of = _labeled_files(test)
    shared = sorted(number_of.keys() & _labeled_files(train).keys(), key=number_of.__getitem__) if number_of else []
    if not shared:
        return ""
    count, example = len(shared), f"such as {test.name(number_of[shared[0]])}"
    if count == len(number_of):
        raise UserError(
            f"all {count:,} test images are training images too, {example}: give sets without a common file, or no"
            " test set to hold out a fifth"
        )
    are = "are training images" if count > 1 else "is a training image"
    return f", but {count:,} of its {len(number_of):,} images {are} too, {example}"


def _labeled_files(source: Source) -> dict[str, int]:
    """The files of the images that a protocol uses, with the numbers of these images: of one class per image, those
    without a label are left out. Images of which none has a label have marks, masks or boxes instead."""
    files = list(files_of(source))
    has_label = labels_of(source) >= 0 if files and marks_in(source) is None else None
    if has_label is None or not has_label.any():
        return {file: number for number, file in enumerate(files)}
    return {files[number]: number for number in has_label.nonzero().flatten().tolist()}
