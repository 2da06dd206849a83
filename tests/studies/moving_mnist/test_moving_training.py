import math
from dataclasses import replace

import pytest
import torch
from references.moving import contrast
from stocks import bars, source, tints
from synthetic import vectors

from vantage.errors import UserError
from vantage.schedules import CosineByStep
from vantage.studies.moving_mnist import (
    BackgroundClass,
    Bench,
    ClipContrast,
    ClipEncoder,
    Clips,
    ClipTraining,
    ContrastiveRow,
    DigitClass,
    Factors,
    FrameEncoder,
    LinearHeads,
    Location,
    Scene,
    SharedFactors,
    SupervisedTraining,
    chance,
    frame_features,
    load_backgrounds,
    load_digits,
    normalize_pixels,
    picture,
)
from vantage.training.optimizers import AdamW

BRIEF = ClipTraining(epochs=1, batch_size=32, optimizer=AdamW(weight_decay=0.0), learning_rate=CosineByStep(0.01))


def ignore(step: int, loss: float) -> None:
    """Nobody listens."""


def clips(images: int, seed: int = 0) -> Clips:
    """Three classes of digits and of backgrounds that are easy to tell."""
    digits = load_digits(source(bars(images, 3, seed), 3), 3)
    return Clips(digits, load_backgrounds(source(tints(30, 3, seed=seed), 3), classes=3), Scene(seen=3), seed)


@pytest.mark.parametrize(("count", "temperature"), [(2, 0.1), (9, 1.0)])
def test_the_loss_equals_a_loop_over_pairs(count: int, temperature: float) -> None:
    first, second = vectors(count, 5, 0), vectors(count, 5, 1)
    loss = ClipContrast(temperature=temperature).loss(first, second)
    assert loss.item() == pytest.approx(contrast(first, second, temperature), abs=1e-10)
    other = ClipContrast(temperature=temperature).loss(second, first)
    assert loss.item() == pytest.approx(other.item(), abs=1e-12)


def test_the_gradient_of_the_loss_is_that_of_differences() -> None:
    first, second = (vectors(4, 3, seed).requires_grad_() for seed in (0, 1))
    assert torch.autograd.gradcheck(ClipContrast(temperature=0.5).loss, (first, second))


def test_equal_vectors_have_no_information_and_separate_ones_reach_the_bound() -> None:
    same = torch.nn.functional.normalize(torch.ones(8, 4), dim=1)
    assert ClipContrast().loss(same, same).item() == pytest.approx(math.log(8), abs=1e-6)
    apart = torch.eye(8)
    assert ClipContrast(temperature=0.02).loss(apart, apart).item() == pytest.approx(0.0, abs=1e-6)


def test_networks_are_those_of_the_paper() -> None:
    network = ClipEncoder().build()
    kernels = [part.weight.shape for part in network.frame.layers if isinstance(part, torch.nn.Conv2d)]
    assert [tuple(kernel) for kernel in kernels] == [(8, 3, 3, 3), (16, 8, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3)]
    assert network.recurrent.hidden_size == 64 and network.recurrent.num_layers == 1
    first, second = torch.randn(3, 10, 3, 64, 64), torch.randn(3, 3, 64, 64)
    v1, v2 = network(first, second)
    assert v1.shape == v2.shape == (3, 64)
    for vector in (v1, v2):
        torch.testing.assert_close(vector.norm(dim=1), torch.ones(3))
    network.eval()
    hidden, _ = network.recurrent(torch.stack([network.frame(frames) for frames in first.unbind(1)], 1))
    expected = torch.nn.functional.normalize(network.project_first(hidden[:, -1]), dim=1)
    torch.testing.assert_close(network(first, second)[0], expected, atol=1e-5, rtol=1e-4)


def test_the_clip_network_sees_the_order_of_the_frames() -> None:
    network = ClipEncoder(FrameEncoder((4, 8))).build().eval()
    first, second = torch.randn(2, 4, 3, 16, 16), torch.randn(2, 3, 16, 16)
    assert not torch.allclose(network(first, second)[0], network(first.flip(1), second)[0])


def test_shared_factors_are_learned_and_training_is_reproducible() -> None:
    """Backgrounds of one color each: sharing them is enough to tell them; I_NCE on new clips is above nothing."""
    train, test = clips(96), clips(48, seed=5)
    method = ClipContrast(ClipEncoder(FrameEncoder((4, 8)), 8, 8), course=replace(BRIEF, epochs=4, batch_size=16))
    shared = SharedFactors(background=True)
    losses: list[tuple[int, float]] = []
    network = method.train(train, shared, 0, lambda step, loss: losses.append((step, loss)))
    assert [step for step, _ in losses] == list(range(1, 25))
    information = method.information(network, test, shared, 48)
    assert 0.3 < information < math.log(16)
    again = method.train(train, shared, 0, ignore)
    for one, other in zip(network.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    head = LinearHeads(replace(BRIEF, epochs=10, batch_size=16))
    before = [parameter.clone() for parameter in network.frame.parameters()]
    errors = head.measure(network.frame, train, test, 0, ignore)
    assert errors["background"] < 15.0
    assert all(torch.equal(one, other) for one, other in zip(before, network.frame.parameters(), strict=True))


@pytest.mark.parametrize(
    "task",
    [
        DigitClass(),
        pytest.param(BackgroundClass(), marks=pytest.mark.slow),
        pytest.param(Location(), marks=pytest.mark.slow),
    ],
    ids=lambda task: task.name,
)
def test_the_supervised_baseline_learns(task: DigitClass | BackgroundClass | Location) -> None:
    train, test = (Clips(one.digits, one.backgrounds, Scene(canvas=40), one.seed) for one in (clips(96), clips(48, 5)))
    baseline = SupervisedTraining(FrameEncoder((8, 16, 32)), replace(BRIEF, epochs=12, batch_size=16))
    errors = baseline.measure(train, test, task, 0, ignore)
    limit = {"digit": 20.0, "background": 10.0, "location": 3.6}[task.name]  # chance is 67, 67 and 4.6
    assert list(errors) == [task.name] and errors[task.name] < limit


def test_errors_are_in_per_cent_and_pixels() -> None:
    some_clips = clips(6)
    factors = Factors(
        torch.arange(2), torch.arange(2), torch.zeros(2, 2, dtype=torch.int64), torch.tensor([[3.2, 4.4], [36.0, 0.0]])
    )
    answer = Location().answer(factors, some_clips)
    guesses = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    expected = [math.dist((3, 4), (18, 18)), 0.0]  # places as drawn: whole pixels
    assert Location().errors(guesses, answer, some_clips).tolist() == pytest.approx(expected, abs=1e-4)
    guesses = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert DigitClass().errors(guesses, DigitClass().answer(factors, some_clips), some_clips).tolist() == [100.0, 0.0]
    assert BackgroundClass().outputs(some_clips) == 3


def test_linear_heads_reach_the_least_squares_that_a_solver_finds() -> None:
    train, test = clips(64), clips(48, seed=5)
    network = FrameEncoder((4, 8)).build()
    course = ClipTraining(epochs=150, batch_size=64, optimizer=AdamW(weight_decay=0.0), learning_rate=CosineByStep(0.1))
    measures = LinearHeads(course).measure(network, train, test, 0, ignore, (DigitClass(), Location()))
    features, factors = frame_features(network, train)
    test_features, test_factors = frame_features(network, test)
    ones = [torch.cat([vector, torch.ones(len(vector), 1)], 1).double() for vector in (features, test_features)]
    weight = torch.linalg.lstsq(ones[0], Location().answer(factors, train).double()).solution
    errors = Location().errors((ones[1] @ weight).float(), Location().answer(test_factors, test), test)
    assert measures["location"] == pytest.approx(float(errors.mean()), abs=0.3)


def test_chance_is_the_best_guess_without_looking() -> None:
    some_clips = clips(300)
    heads = LinearHeads()
    bench = Bench(some_clips, some_clips, ClipContrast(course=BRIEF), SupervisedTraining(course=BRIEF), heads, 0, 64)
    errors = chance(bench)
    assert errors["digit"] == pytest.approx(200 / 3, abs=0.1)
    assert errors["background"] == pytest.approx(200 / 3, abs=10)
    assert errors["location"] == pytest.approx(13.77, abs=1.0)
    assert ContrastiveRow(SharedFactors(digit=True)).work(bench) == 9 * 32 * 4 + 150
    assert chance(replace(bench, test_frames=301)) == errors  # no more frames than digits


def test_features_are_those_of_the_last_frames() -> None:
    some_clips = clips(12)
    network = FrameEncoder((4, 8)).build().eval()
    vector, factors = frame_features(network, some_clips, 7)
    frames, expected = some_clips.frames(0, torch.arange(7))
    torch.testing.assert_close(vector, network(normalize_pixels(frames)))
    assert torch.equal(factors.place, expected.place) and len(factors) == 7


def test_the_picture_shows_every_combination() -> None:
    some_clips = clips(6)
    image = picture(some_clips, 1)
    assert image.height > 7 * 64 and image.width > 5 * 64


def test_mistakes_are_reported() -> None:
    some_clips = clips(12)
    with pytest.raises(UserError, match="at least 1 epoch"):
        ClipTraining(epochs=0)
    with pytest.raises(UserError, match="batches of 32"):
        ClipContrast(course=BRIEF).train(some_clips, SharedFactors(digit=True), 0, ignore)
    network = ClipEncoder(FrameEncoder((4,))).build()
    with pytest.raises(UserError, match="needs 32 digits"):
        ClipContrast(course=BRIEF).information(network, some_clips, SharedFactors(digit=True), 10)
    with pytest.raises(UserError, match="one layer or more"):
        FrameEncoder(())
