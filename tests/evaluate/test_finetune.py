"""Fine-tuning: against plain torch, its samples, learning and resuming, and an unchanged run."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tiny import TinyBackbone, cpu_work, images, saved_run, tiny_run
from torch import Tensor, nn

from vantage import draws
from vantage.data import SourceSubset
from vantage.encoders.normalization.choices import SplitBatchNorm
from vantage.errors import UserError
from vantage.evaluate import FineTune, Outcome, evaluate
from vantage.evaluate.protocols.finetune import finetune, tuning
from vantage.evaluate.protocols.finetune.finetune import images_named_in, share_of_each_class
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.protocols.linear.crops import epochs_of
from vantage.evaluate.protocols.linear.pooled import training_view
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.frozen.features import batches
from vantage.measures import accuracy
from vantage.measures.accuracy import best_classes
from vantage.storage import state as kept_state


def test_the_papers_values_are_the_default() -> None:
    protocol = FineTune()
    schedule = protocol.schedule(0.01, 0)
    assert (schedule.epochs, schedule.batch_size, schedule.learning_rates, schedule.weight_decay) == (
        20,
        256,
        (0.01, 1.0),
        5e-4,
    )
    assert protocol.schedule(0.1, 0).weight_decay == protocol.schedule(1.0, 0).weight_decay == 1e-4
    assert FineTune(weight_decay=0.0).schedule(0.01, 0).weight_decay == 0
    factors = [schedule.factor(epoch) for epoch in range(20)]
    assert factors == pytest.approx([1.0] * 12 + [0.2] * 4 + [0.04] * 4)


def test_it_equals_plain_torch(tmp_path: Path) -> None:
    encoder, source, work = random_encoder(tiny_run()), images(20, 0), cpu_work(tmp_path)
    label = torch.tensor([source.label(number) or 0 for number in range(20)])
    schedule = TuningSchedule(5, 8, (0.05, 0.5), 0.01, 0.3, 3)
    tuned_copy = tune(schedule, encoder, source, label, 3, work)

    backbone = TinyBackbone().build()  # whose BatchNorm is torch's own
    backbone.load_state_dict(encoder.backbone.state_dict())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draws.mix(3, 0x7E5A))
        head = nn.Linear(encoder.width, 3)
        nn.init.normal_(head.weight, std=0.01)
        nn.init.zeros_(head.bias)
    views = epochs_of(source, training_view(encoder, 0.3), 7, 3, work)  # 20 images in three steps
    velocity: dict[Tensor, Tensor] = {}
    for epoch, factor in enumerate((1.0, 1.0, 1.0, 0.2, 0.04)):
        for rows, pixels in views(epoch):
            loss = F.cross_entropy(head(backbone(pixels)), label[rows])
            for part, rate in ((backbone, 0.05), (head, 0.5)):
                weights = list(part.parameters())
                for weight, gradient in zip(
                    weights, torch.autograd.grad(loss, weights, retain_graph=True), strict=True
                ):
                    push = gradient + 0.01 * weight.detach()
                    velocity[weight] = 0.9 * velocity[weight] + push if weight in velocity else push
                    weight.grad = velocity[weight] * factor * rate
            with torch.no_grad():
                for weight in velocity:
                    weight -= weight.grad  # pyright: ignore[reportOperatorIssue]
    torch.testing.assert_close(tuned_copy.backbone.state_dict(), backbone.state_dict(), rtol=2e-4, atol=2e-5)
    torch.testing.assert_close(tuned_copy.head.weight.detach(), head.weight.detach(), rtol=2e-4, atol=2e-5)


def test_it_learns_and_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    saved_run(tmp_path / "run", tiny_run())
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    train, test = images(90, 0, noise=110), images(45, 1, noise=110)
    protocol = FineTune(fraction=1.0, epochs=5, batch_size=9, backbone_learning_rate=0.05, head_learning_rate=0.2)
    result = evaluate(tmp_path / "run", protocol, train, test, baselines=True, work=cpu_work(tmp_path))
    outcome = result.outcomes["moco_v2"]
    (losses,) = outcome.details["losses"]
    assert losses[-1] < 0.5 * losses[0] and outcome.accuracy.top1 > 85 and outcome.train_images == 90
    assert list(result.outcomes) == ["moco_v2", "raw pixels", "random encoder"]
    assert result.outcomes["random encoder"].accuracy.top1 > 60  # supervised from scratch
    after = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert all(after[path] == content for path, content in before.items()) and len(after) == len(before) + 1
    record = json.loads(next((tmp_path / "run" / "evaluations").iterdir()).read_text())
    assert record["encoder"] == load(tmp_path / "run").digest()


def test_a_copy_of_the_backbone_is_trained(tmp_path: Path) -> None:
    encoder = random_encoder(tiny_run())
    before = {name: value.clone() for name, value in encoder.backbone.state_dict().items()}
    label = torch.tensor([0, 1, 2] * 4)
    tuned_copy = tune(
        TuningSchedule(1, 6, (0.1, 0.1), 0.0, 0.5, 0), encoder, images(12, 0), label, 3, cpu_work(tmp_path)
    )
    assert not encoder.backbone.training and not any(p.requires_grad for p in encoder.backbone.parameters())
    torch.testing.assert_close(encoder.backbone.state_dict(), before, rtol=0, atol=0)
    new, old = dict(tuned_copy.backbone.named_parameters()), dict(encoder.backbone.named_parameters())
    assert all(not torch.equal(new[name], old[name]) for name in old)
    assert not torch.equal(tuned_copy.backbone.state_dict()["bn1.running_mean"], before["bn1.running_mean"])


def test_batchnorm_in_groups_becomes_batchnorm_over_the_whole_batch(tmp_path: Path) -> None:
    whole = replace(random_encoder(tiny_run()), backbone=TinyBackbone().build().eval().requires_grad_(False))
    split = replace(whole, backbone=SplitBatchNorm(2).convert(copy.deepcopy(whole.backbone)))
    label = torch.tensor([0, 1, 2] * 3)  # nine images, which two groups do not divide
    schedule = TuningSchedule(2, 9, (0.1, 0.1), 0.0, 0.5, 0)
    one, two = (tune(schedule, each, images(9, 0), label, 3, cpu_work(tmp_path)) for each in (whole, split))
    torch.testing.assert_close(one.head.weight, two.head.weight)


def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, source = random_encoder(tiny_run()), images(24, 0)
    label, schedule = torch.tensor([0, 1, 2] * 8), TuningSchedule(4, 8, (0.05, 0.2), 1e-4, 0.3, 1)
    whole = tune(schedule, encoder, source, label, 3, cpu_work(tmp_path / "whole"))
    monkeypatch.setattr(kept_state, "MINUTES", -1.0)
    plain = tuning._Training.epoch

    def stopping(state: tuning._Training, *rest: object) -> float:
        if len(state.losses) == 2:
            raise KeyboardInterrupt
        return plain(state, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(tuning._Training, "epoch", stopping)
    with pytest.raises(KeyboardInterrupt):
        tune(schedule, encoder, source, label, 3, cpu_work(tmp_path / "cut"))
    (file,) = (tmp_path / "cut" / "cache" / "finetune").iterdir()
    monkeypatch.setattr(tuning._Training, "epoch", plain)
    again = tune(schedule, encoder, source, label, 3, cpu_work(tmp_path / "cut"))
    assert again.losses == whole.losses and torch.equal(again.head.weight, whole.head.weight)
    torch.testing.assert_close(again.backbone.state_dict(), whole.backbone.state_dict(), rtol=0, atol=0)
    assert not file.exists()


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 1.0])
def test_a_share_is_balanced(fraction: float) -> None:
    label = torch.tensor([0] * 100 + [1] * 40 + [2] * 7)[torch.randperm(147)]
    rows = share_of_each_class(label, fraction, 0)
    assert label[rows].bincount().tolist() == [max(1, round(fraction * count)) for count in (100, 40, 7)]
    assert len(rows.unique()) == len(rows) and torch.equal(rows, share_of_each_class(label, fraction, 0))
    assert fraction == 1 or not torch.equal(rows, share_of_each_class(label, fraction, 1))


def test_several_samples_report_their_spread(tmp_path: Path) -> None:
    protocol = FineTune(
        fraction=0.2, samples=3, epochs=2, batch_size=16, backbone_learning_rate=0.05, head_learning_rate=0.2
    )
    outcome = protocol(random_encoder(tiny_run()), images(90, 0), images(45, 1), cpu_work(tmp_path))
    each = torch.tensor([sample["top-1"] for sample in outcome.details["samples"]], dtype=torch.float64)
    assert outcome.measures == pytest.approx({"top-1": float(each.mean()), "top-1 sd": float(each.std())})
    assert len(each) == 3 and outcome.train_images == 18


def test_finished_samples_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = FineTune(
        fraction=0.2, samples=3, epochs=1, batch_size=16, backbone_learning_rate=0.05, head_learning_rate=0.2
    )
    train, test, schedules, stop = images(60, 0), images(30, 1), list[TuningSchedule](), 3

    def count_calls(schedule: TuningSchedule, *rest: object) -> tuning.TunedCopy:
        schedules.append(schedule)
        if len(schedules) == stop:
            raise KeyboardInterrupt
        return tune(schedule, *rest)  # pyright: ignore[reportArgumentType]

    def tune_in(protocol: FineTune, encoder: FrozenEncoder, folder: str) -> Outcome:
        return protocol(encoder, train, test, cpu_work(tmp_path / folder))

    frozen_encoder = random_encoder(tiny_run())
    whole = tune_in(protocol, frozen_encoder, "whole")
    monkeypatch.setattr(finetune, "tune", count_calls)
    with pytest.raises(KeyboardInterrupt):
        tune_in(protocol, frozen_encoder, "cut")
    stop = 0
    assert (
        tune_in(protocol, frozen_encoder, "cut") == whole
        and [schedule.seed for schedule in schedules[2:]] == [schedules[2].seed] * 2
    )
    more = tune_in(replace(protocol, samples=4), frozen_encoder, "cut")
    assert more.details["samples"][:3] == whole.details["samples"] and len(schedules) == 5
    tune_in(replace(protocol, seed=1), frozen_encoder, "cut")
    tune_in(protocol, random_encoder(tiny_run(), 1), "cut")
    assert len(schedules) == 5 + 3 + 3
    train = images(60, 2)
    assert tune_in(protocol, frozen_encoder, "cut") != whole and len(schedules) == 14


def test_images_in_memory_and_streamed_ones_are_different_trainings(tmp_path: Path) -> None:
    """Their crops are drawn differently, so neither may continue from the other's state in the cache."""
    protocol = FineTune(fraction=0.5, epochs=1, batch_size=16, backbone_learning_rate=0.05, head_learning_rate=0.2)
    encoder, train, test, work = random_encoder(tiny_run()), images(60, 0), images(30, 1), cpu_work(tmp_path)
    without_memory = replace(work, resident_bytes=0)
    alone = protocol(encoder, train, test, replace(without_memory, cache=tmp_path / "alone"))
    first, other = protocol(encoder, train, test, work), protocol(encoder, train, test, without_memory)
    assert other == alone and first.details["losses"] != other.details["losses"]


def test_another_list_under_the_same_name_is_another_training(tmp_path: Path) -> None:
    source, file = images(30, 0), tmp_path / "list.txt"
    protocol = FineTune(names=str(file), epochs=1, backbone_learning_rate=0.01, head_learning_rate=0.1)
    for count in (3, 5):
        file.write_text("\n".join(source.name(number) for number in range(count)))
        assert protocol(random_encoder(tiny_run()), source, images(9, 1), cpu_work(tmp_path)).train_images == count


def test_names_in_a_file_are_trained_on(tmp_path: Path) -> None:
    source = images(30, 0)
    (tmp_path / "list.txt").write_text(f"{source.name(4)}\n\n{source.name(2)}\n{source.name(4)}\n{source.name(9)}\n")
    assert images_named_in(source, tmp_path / "list.txt").tolist() == [2, 4, 9]
    protocol = FineTune(names=str(tmp_path / "list.txt"), epochs=1, backbone_learning_rate=0.01, head_learning_rate=0.1)
    outcome = protocol(random_encoder(tiny_run()), source, images(9, 1), cpu_work(tmp_path))
    assert outcome.train_images == 3 and len(outcome.details["names"]) == 32


class Named(SourceSubset):
    """Images with names of files in folders."""

    def name(self, number: int) -> str:
        return f"class {number % 2}/{number}.jpg" if number else "class 0/1.jpg"


def test_names_may_be_last_parts_but_not_ambiguous(tmp_path: Path) -> None:
    source, file = Named(images(6, 0), range(6)), tmp_path / "list.txt"
    file.write_text("5.jpg\nclass 0/1.jpg\n")
    assert images_named_in(source, file).tolist() == [0, 5]
    file.write_text("5.jpg\nclass 1/5.jpg\n")  # both names of one image
    assert images_named_in(source, file).tolist() == [5]
    for text, sentence in (
        ("1.jpg\n", "1 of the 1 names"),
        ("x.jpg\n5.jpg\n", "such as 'x.jpg'"),
        ("\n", "names no image"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=sentence):
            images_named_in(source, file)
    with pytest.raises(UserError, match="cannot read names"):
        images_named_in(source, tmp_path / "missing.txt")


def test_two_images_of_one_whole_name_are_ambiguous(tmp_path: Path) -> None:
    source, file = SourceSubset(images(6, 0), range(6)), tmp_path / "list.txt"
    source.name = lambda number: ["a.jpg", "b.jpg", "a.jpg"][number % 3]  # type: ignore[method-assign]
    file.write_text("a.jpg\n")
    with pytest.raises(UserError, match="1 of the 1 names"):
        images_named_in(source, file)


def test_raw_pixels_and_a_last_batch_of_one_image_are_no_trouble(tmp_path: Path) -> None:
    label = torch.tensor([0, 1, 0])
    for encoder in (raw_pixels(tiny_run()), random_encoder(tiny_run())):
        tuned_copy = tune(
            TuningSchedule(1, 2, (0.1, 0.1), 0.0, 0.5, 0), encoder, images(3, 0), label, 2, cpu_work(tmp_path)
        )
        assert len(tuned_copy.losses) == 1


def test_predictions_are_those_of_the_copy_through_the_view(tmp_path: Path) -> None:
    encoder, test = random_encoder(tiny_run()), images(12, 1)
    label = torch.tensor([0, 1, 2] * 4)
    tuned_copy = tune(
        TuningSchedule(1, 6, (0.1, 0.1), 0.0, 0.5, 0), encoder, images(12, 0), label, 3, cpu_work(tmp_path)
    )
    vector = torch.cat(
        [part for _, part in batches(replace(encoder, backbone=tuned_copy.backbone), test, cpu_work(tmp_path))]
    )
    assert torch.equal(tuned_copy.predict(encoder, test, cpu_work(tmp_path)), best_classes(tuned_copy.head(vector)))
    assert accuracy(tuned_copy.predict(encoder, test, cpu_work(tmp_path)), label, 3).top1 <= 100


def test_what_cannot_be_tuned_is_refused(tmp_path: Path) -> None:
    encoder, work = random_encoder(tiny_run()), cpu_work(tmp_path)
    with pytest.raises(UserError, match="one class"):
        FineTune()(encoder, images(12, 0, classes=1), images(6, 1, classes=1), work)
    with pytest.raises(UserError, match=r"diverged in epoch \d: the loss is .* choose lower learning rates"):
        protocol = FineTune(fraction=1.0, epochs=3, batch_size=8, backbone_learning_rate=1e20, head_learning_rate=1e20)
        protocol(encoder, images(24, 0), images(6, 1), work)
    (tmp_path / "one.txt").write_text(images(12, 0).name(3))
    with pytest.raises(UserError, match="1 image is too few"):
        FineTune(names=str(tmp_path / "one.txt"))(encoder, images(12, 0), images(6, 1), work)
    wrong = (
        {"fraction": 0.0}, {"fraction": 1.5}, {"samples": 0}, {"epochs": 0}, {"batch_size": 1},
        {"head_learning_rate": -1.0},
        {"weight_decay": -1.0}, {"samples": 2, "fraction": 1.0}, {"samples": 2, "names": "x"},
    )  # fmt: skip
    for settings in wrong:
        with pytest.raises(UserError, match="finetune"):
            FineTune(**settings)  # pyright: ignore[reportArgumentType]
