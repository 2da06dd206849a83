"""Accuracy: counts of correct guesses."""

import torch

from vantage.evaluate import Accuracy
from vantage.measures import accuracy
from vantage.measures.accuracy import best_classes


def test_first_and_first_five_guesses() -> None:
    guess = torch.tensor([[0, 1, 2, 3, 4], [1, 0, 2, 3, 4], [5, 4, 3, 2, 1], [6, 5, 4, 3, 2]])
    label = torch.tensor([0, 0, 1, 0])
    assert accuracy(guess, label, 7) == Accuracy(25.0, 75.0)


def test_top5_is_absent_where_it_would_always_be_right() -> None:
    guess = torch.tensor([[0, 1, 2, 3, 4]])
    assert accuracy(guess, torch.tensor([4]), 5) == Accuracy(0.0, None)
    assert accuracy(guess[:, :1], torch.tensor([0]), 9) == Accuracy(100.0, None)


def test_a_class_without_training_images_is_wrong() -> None:
    guess = torch.tensor([[0, 1, 2, 3, 4], [1, 0, 2, 3, 4]])
    assert accuracy(guess, torch.tensor([9, 1]), 10) == Accuracy(50.0, 50.0)


def test_nan_comes_last() -> None:
    assert best_classes(torch.tensor([[float("nan"), 1.0, 2.0]])).tolist() == [[2, 1, 0]]
