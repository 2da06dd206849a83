"""The classifier's learning rate, chosen on held-out training images: the choice against a plain loop, and its cost."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import cpu_work, images, tiny_run

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


@pytest.mark.slow
def test_the_learning_rate_is_the_best_on_held_out_images(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(90, 0), images(30, 1)
    outcome = CHOOSING(encoder, train, test, cpu_work(tmp_path))
    label = labels_of(train)
    rows = share_of_each_class(label, 0.5, 0)
    mask = hold_out_mask(label[rows], 0.2, 0)
    assert (len(rows), int(mask.sum())) == (45, 9)
    by_hand = []
    for rate in CHOOSING.head_learning_rates:
        schedule = TuningSchedule(2, 8, (0.05, rate), 1e-4, 0.08, 0)
        tuned_copy = tune(
            schedule, encoder, SourceSubset(train, rows[~mask]), label[rows[~mask]], 3, cpu_work(tmp_path / "hand")
        )
        guess = tuned_copy.predict(encoder, SourceSubset(train, rows[mask]), cpu_work(tmp_path / "hand"))
        by_hand.append(accuracy(guess, label[rows[mask]], 3).top1)
    assert outcome.details["held_out_accuracy"] == [by_hand] and by_hand[0] > by_hand[1]
    assert outcome.chosen["head_learning_rate"] == [0.2] and "9 of the 45 training images" in str(outcome.chosen["by"])
    alone = FineTune(0.5, epochs=2, batch_size=8, backbone_learning_rate=0.05, head_learning_rate=0.2)(
        encoder, train, test, cpu_work(tmp_path)
    )
    assert outcome.measures == alone.measures and outcome.details["losses"] == alone.details["losses"]


def test_each_sample_chooses_for_itself_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(60, 0), images(30, 1)
    protocol = replace(CHOOSING, samples=2, epochs=1)
    outcome = protocol(encoder, train, test, cpu_work(tmp_path))
    each = torch.tensor([sample["top-1"] for sample in outcome.details["samples"]], dtype=torch.float64)
    assert outcome.measures == pytest.approx({"top-1": float(each.mean()), "top-1 sd": float(each.std())})
    assert len(outcome.details["held_out_accuracy"]) == 2 and draws.mix(0, 1) != 0
    monkeypatch.setattr(tuning._Training, "epoch", None)  # no training any more
    assert protocol(encoder, train, test, cpu_work(tmp_path)) == outcome


def test_a_diverging_learning_rate_is_not_chosen(tmp_path: Path) -> None:
    protocol = replace(CHOOSING, head_learning_rates=(1e30, 0.2), epochs=3)
    outcome = protocol(random_encoder(tiny_run()), images(60, 0), images(30, 1), cpu_work(tmp_path))
    assert outcome.chosen["head_learning_rate"] == [0.2] and outcome.details["held_out_accuracy"][0][0] == 0.0


def test_what_cannot_be_chosen_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no class has two images"):
        FineTuneChosen(0.01)(random_encoder(tiny_run()), images(12, 0), images(6, 1), cpu_work(tmp_path))
    for rates in ((0.1,), (0.1, 0.1)):
        with pytest.raises(UserError, match="finetune-chosen: head_learning_rates is"):
            FineTuneChosen(head_learning_rates=rates)
    for samples, fraction in ((0, 0.1), (2, 1.0)):
        with pytest.raises(UserError, match=f"finetune-chosen: .*{samples}"):
            FineTuneChosen(fraction, samples)
    with pytest.raises(UserError, match="fraction is 2"):
        FineTuneChosen(2.0)
