"""Measures of segmentation, pixel by pixel over plain lists, from their definitions."""

import math


def measures(truths: list[list[list[int]]], guesses: list[list[list[int]]], classes: int) -> dict[str, object]:
    """IoU of each class (not a number where neither truth nor guess has it), and the three means, in percent."""
    both = [0] * classes
    either = [0] * classes
    own = [0] * classes
    right = pixels = 0
    for truth, guess in zip(truths, guesses, strict=True):
        for true_row, guess_row in zip(truth, guess, strict=True):
            for true, guessed_class in zip(true_row, guess_row, strict=True):
                if true == 255:
                    continue
                pixels += 1
                right += true == guessed_class
                own[true] += 1
                for number in range(classes):
                    both[number] += true == number and guessed_class == number
                    either[number] += true == number or guessed_class == number
    iou = [both[number] / either[number] if either[number] else math.nan for number in range(classes)]
    present = [value for value in iou if not math.isnan(value)]
    recalls = [both[number] / own[number] for number in range(classes) if own[number]]
    return {
        "IoU": iou,
        "mIoU": 100 * sum(present) / len(present),
        "pixel accuracy": 100 * right / pixels,
        "mean accuracy": 100 * sum(recalls) / len(recalls),
    }
