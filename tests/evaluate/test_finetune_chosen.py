"""The classifier's learning rate, chosen on held-out training images: the choice against a plain loop, and its cost."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import images, tiny_run, work

from vantage import draws
from vantage.data import SourceSubset, labels_of
from vantage.data.splits import hold_out_mask
from vantage.errors import UserError
from vantage.evaluate import FineTune, FineTuneChosen
from vantage.evaluate.protocols.finetune import tuning
from vantage.evaluate.protocols.finetune.finetune import share_of_each_class
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.frozen.encoder import random_encoder
from vantage.measures import accuracy

CHOOSING = FineTuneChosen(0.5, epochs=2, batch_size=8, backbone_learning_rate=0.05, head_learning_rates=(0.2, 1e-4))


def test_the_learning_rate_is_the_best_on_held_out_images(tmp_path: Path) -> None:
    trained, train, test = random_encoder(tiny_run()), images(90, 0), images(30, 1)
    found = CHOOSING(trained, train, test, work(tmp_path))
    label = labels_of(train)
    rows = share_of_each_class(label, 0.5, 0)
    held = hold_out_mask(label[rows], 0.2, 0)
    assert (len(rows), int(held.sum())) == (45, 9)
    by_hand = []
    for rate in CHOOSING.head_learning_rates:
        schedule = TuningSchedule(2, 8, (0.05, rate), 1e-4, 0.08, 0)
        tuned = tune(
            schedule, trained, SourceSubset(train, rows[~held]), label[rows[~held]], 3, work(tmp_path / "hand")
        )
        guess = tuned.predict(trained, SourceSubset(train, rows[held]), work(tmp_path / "hand"))
        by_hand.append(accuracy(guess, label[rows[held]], 3).top1)
    assert found.details["held_out_accuracy"] == [by_hand] and by_hand[0] > by_hand[1]
    assert found.chosen["head_rate"] == [0.2] and "9 of the 45 training images" in str(found.chosen["by"])
    alone = FineTune(0.5, epochs=2, batch_size=8, backbone_learning_rate=0.05, head_learning_rate=0.2)(
        trained, train, test, work(tmp_path)
    )
    assert found.measures == alone.measures and found.details["losses"] == alone.details["losses"]


def test_each_sample_chooses_for_itself_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, train, test = random_encoder(tiny_run()), images(60, 0), images(30, 1)
    protocol = replace(CHOOSING, samples=2, epochs=1)
    found = protocol(trained, train, test, work(tmp_path))
    each = torch.tensor([sample["top-1"] for sample in found.details["samples"]], dtype=torch.float64)
    assert found.measures == pytest.approx({"top-1": float(each.mean()), "top-1 sd": float(each.std())})
    assert len(found.details["held_out_accuracy"]) == 2 and draws.mix(0, 1) != 0
    monkeypatch.setattr(tuning._Training, "epoch", None)  # no training any more
    assert protocol(trained, train, test, work(tmp_path)) == found


def test_a_diverging_learning_rate_is_not_chosen(tmp_path: Path) -> None:
    protocol = replace(CHOOSING, head_learning_rates=(1e30, 0.2), epochs=3)
    found = protocol(random_encoder(tiny_run()), images(60, 0), images(30, 1), work(tmp_path))
    assert found.chosen["head_rate"] == [0.2] and found.details["held_out_accuracy"][0][0] == 0.0


def test_what_cannot_be_chosen_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no class has two images"):
        FineTuneChosen(0.01)(random_encoder(tiny_run()), images(12, 0), images(6, 1), work(tmp_path))
    for rates in ((0.1,), (0.1, 0.1)):
        with pytest.raises(UserError, match="finetune-chosen: head_learning_rates is"):
            FineTuneChosen(head_learning_rates=rates)
    for samples, fraction in ((0, 0.1), (2, 1.0)):
        with pytest.raises(UserError, match=f"finetune-chosen: .*{samples}"):
            FineTuneChosen(fraction, samples)
    with pytest.raises(UserError, match="fraction is 2"):
        FineTuneChosen(2.0)
