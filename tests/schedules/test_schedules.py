"""Schedules against their closed forms, at their ends, and with values that must be refused."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vantage.errors import UserError
from vantage.schedules import (
    BetweenEpochs,
    ByEpoch,
    Constant,
    Cosine,
    CosineByEpoch,
    CosineByStep,
    Exponential,
    LearningRate,
    Linear,
    RampByEpoch,
    Schedule,
    StepDecay,
    Steps,
)

numbers = st.floats(-100, 100)


@given(start=numbers, end=numbers, steps=st.integers(1, 50))
def test_linear_and_cosine_keep_their_ends_and_closed_forms(start: float, end: float, steps: int) -> None:
    line, curve = Linear(start, end, steps), Cosine(start, end, steps)
    for schedule in (line, curve):
        assert schedule(0) == start
        assert schedule(steps) == end
        assert schedule(steps + 17) == end
    for step in range(steps + 1):
        assert line(step) == pytest.approx(start + (end - start) * step / steps, abs=1e-9)
        closed_form = end + (start - end) * (1 + math.cos(math.pi * step / steps)) / 2
        assert curve(step) == pytest.approx(closed_form, abs=1e-9)


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_linear_and_cosine_fall_and_climb_without_a_turn(kind: type[Linear] | type[Cosine]) -> None:
    falling_schedule = [kind(1.0, 0.1, 40)(step) for step in range(60)]
    rising_schedule = [kind(0.1, 1.0, 40)(step) for step in range(60)]
    assert all(a >= b for a, b in itertools.pairwise(falling_schedule)) and falling_schedule[10] > falling_schedule[30]
    assert all(a <= b for a, b in itertools.pairwise(rising_schedule)) and rising_schedule[10] < rising_schedule[30]


def test_cosine_agrees_with_the_scheduler_of_torch() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.05)
    ours = Cosine(0.5, 0.05, 20)
    for step in range(21):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(ours(step), abs=1e-12)
        optimizer.step()
        theirs.step()


def test_constant_never_changes() -> None:
    assert {Constant(0.25)(step) for step in (0, 1, 10**9)} == {0.25}


def test_steps_jump_at_the_very_step() -> None:
    schedule = Steps(1.0, 0.5, at=(3, 5))
    assert [schedule(step) for step in range(7)] == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def test_exponential_is_rings_annealing_and_saturates_at_47_steps() -> None:
    schedule = Exponential(1.0, 0.1, rate=0.1)
    for step in range(100):
        assert schedule(step) == pytest.approx(0.9 * math.exp(-0.1 * step) + 0.1, abs=1e-12)
    assert schedule(0) == 1.0
    assert schedule(46) - 0.1 > 0.009 >= schedule(47) - 0.1 > 0


@given(steps=st.integers(1, 7), epochs=st.integers(1, 30), peak=st.floats(0.001, 10))
def test_cosine_by_epoch_is_mocos_formula_and_constant_within_an_epoch(steps: int, epochs: int, peak: float) -> None:
    schedule = CosineByEpoch(peak)
    for step in range(steps * epochs):
        expected = peak * 0.5 * (1 + math.cos(math.pi * (step // steps) / epochs))
        assert schedule(step, steps, epochs) == pytest.approx(expected, abs=1e-12)
    assert schedule(0, steps, epochs) == peak
    assert schedule(steps * epochs, steps, epochs) == 0.0


def test_cosine_by_epoch_may_count_epochs_from_one_as_pycontrast_does() -> None:
    schedule = CosineByEpoch(0.03, final=3e-5, first=1)
    for step in range(20):
        epoch = step // 2 + 1
        expected = 3e-5 + (0.03 - 3e-5) * (1 + math.cos(math.pi * epoch / 10)) / 2
        assert schedule(step, 2, 10) == pytest.approx(expected, abs=1e-12)
    assert schedule(19, 2, 10) == pytest.approx(3e-5)
    with pytest.raises(UserError, match="first is 2; it must be 0 or 1"):
        CosineByEpoch(0.03, first=2)


@given(steps=st.integers(1, 7), warmup=st.integers(0, 5), rest=st.integers(1, 10))
def test_cosine_by_step_warms_up_then_follows_the_curve(steps: int, warmup: int, rest: int) -> None:
    schedule, epochs = CosineByStep(4.8, final=4.8e-3, warmup_epochs=warmup), warmup + rest
    for step in range(steps * epochs):
        if step < warmup * steps:
            expected = 4.8 * (step + 1) / (warmup * steps)
        else:
            part = (step - warmup * steps) / (rest * steps)
            expected = 4.8e-3 + (4.8 - 4.8e-3) * 0.5 * (1 + math.cos(math.pi * part))
        assert schedule(step, steps, epochs) == pytest.approx(expected, rel=1e-12)
    assert schedule(steps * epochs, steps, epochs) == 4.8e-3
    assert schedule(steps * epochs + 5, steps, epochs) == 4.8e-3


RATES = [
    CosineByEpoch(0.3, final=0.01, warmup_epochs=3),
    CosineByStep(0.3, final=0.01, warmup_epochs=3),
    StepDecay(0.3, milestones=(6, 8), warmup_epochs=3),
]


@pytest.mark.parametrize("schedule", RATES, ids=lambda schedule: type(schedule).__name__)
def test_rates_climb_to_the_peak_and_never_climb_again(schedule: LearningRate) -> None:
    rates = [schedule(step, 5, 10) for step in range(50)]
    assert rates[0] == pytest.approx(0.3 / 15)
    assert all(a < b for a, b in itertools.pairwise(rates[:15]))
    assert rates[14] == rates[15] == 0.3 == max(rates)
    assert all(a >= b for a, b in itertools.pairwise(rates[15:]))
    assert rates[-1] < 0.05


def test_step_decay_drops_at_the_first_step_of_its_epochs() -> None:
    schedule = StepDecay(0.03, factor=0.1, milestones=(120, 160))
    rates = [schedule(epoch * 10 + step, 10, 200) for epoch in (0, 119, 120, 159, 160, 199) for step in (0, 9)]
    assert rates == pytest.approx([0.03] * 4 + [0.003] * 4 + [0.0003] * 4)


def test_step_decay_without_drops_is_constant() -> None:
    assert {StepDecay(0.03, milestones=())(step, 3, 10) for step in range(30)} == {0.03}


def test_they_are_schedules_and_values() -> None:
    for schedule in (
        Constant(1.0),
        Linear(0.0, 1.0, 2),
        Cosine(0.0, 1.0, 2),
        Steps(1.0, 0.5, (2,)),
        Exponential(1.0, 0.1, 0.1),
    ):
        assert isinstance(schedule, Schedule)
        assert eval(repr(schedule)) == schedule
    for rate in RATES:
        assert isinstance(rate, LearningRate)
        assert eval(repr(rate)) == rate


@pytest.mark.parametrize("schedule", RATES, ids=lambda schedule: type(schedule).__name__)
def test_a_scaled_rate_is_the_same_course_times_the_factor(schedule: LearningRate) -> None:
    for step in range(50):
        assert schedule.scale(2.5)(step, 5, 10) == pytest.approx(2.5 * schedule(step, 5, 10), rel=1e-12)


def test_a_stretched_rate_moves_its_milestones_in_proportion() -> None:
    assert StepDecay(0.03).for_epochs(200, to=100) == StepDecay(0.03, milestones=(60, 80))
    once = StepDecay(0.03, milestones=(120, 160, 200)).for_epochs(240, to=1)
    assert {once(step, 7, 1) for step in range(7)} == {0.03}, "a run of one epoch trains at its rate"
    assert CosineByStep(0.3, warmup_epochs=10).for_epochs(100, to=200) == CosineByStep(0.3, warmup_epochs=20)
    assert CosineByEpoch(0.3).for_epochs(200, to=7) == CosineByEpoch(0.3)
    with_both = StepDecay(0.3, milestones=(6, 8), warmup_epochs=3)
    long = with_both.for_epochs(10, to=40)
    assert [long(4 * step + 3, 5, 40) for step in range(50)] == pytest.approx(
        [with_both(step, 5, 10) for step in range(50)]
    )


@given(epochs=st.integers(20, 300), to=st.integers(1, 300))
def test_a_stretched_step_decay_is_still_a_schedule(epochs: int, to: int) -> None:
    schedule = StepDecay(0.03, milestones=(epochs // 2, epochs // 2 + 1, epochs - 2)).for_epochs(epochs, to)
    assert len(schedule.milestones) == 3
    assert schedule(0, 3, to) > 0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Constant(math.nan), "value"),
        (lambda: Linear(0.0, math.inf, 5), "end"),
        (lambda: Linear(0.0, 1.0, 0), "steps"),
        (lambda: Cosine(0.0, 1.0, -1), "steps"),
        (lambda: Steps(1.0, 0.1, at=(5, 3)), "at"),
        (lambda: Steps(1.0, 0.1, at=(3, 3)), "at"),
        (lambda: Steps(1.0, 0.1, at=(-1, 3)), "at"),
        (lambda: Exponential(1.0, 0.1, rate=0.0), "rate"),
        (lambda: Exponential(1.0, 0.1, rate=-0.5), "rate"),
        (lambda: CosineByEpoch(-0.1), "base"),
        (lambda: CosineByEpoch(0.1, final=math.nan), "final"),
        (lambda: CosineByStep(0.1, warmup_epochs=-1), "warmup_epochs"),
        (lambda: StepDecay(0.1, milestones=(160, 120)), "milestones"),
        (lambda: StepDecay(0.1, milestones=(5,), warmup_epochs=10), "milestones"),
        (lambda: CosineByStep(0.1, warmup_epochs=10)(0, 5, 10), "warmup_epochs"),
        (lambda: CosineByEpoch(0.1)(0, 0, 10), "steps_per_epoch"),
        (lambda: StepDecay(0.1)(0, 5, 0), "epochs"),
        (lambda: CosineByStep(0.1)(-1, 5, 10), "step"),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(make, name: str) -> None:
    with pytest.raises(UserError, match=rf"\b{name} is .*must"):
        make()


@given(every=st.sampled_from([0.5, 1.0, 2**0.5, 10.0]), steps=st.integers(1, 9))
def test_courses_in_epochs(every: float, steps: int) -> None:
    """By epoch a course stands still within an epoch; between epochs it runs straight from value to value."""
    line = Linear(1.0, 0.1, 4)
    stairs, slope = ByEpoch(line, every, steps), BetweenEpochs(line, every, steps)
    for step in range(60):
        epochs_done = step / (every * steps)
        assert stairs(step) == line(math.floor(epochs_done + 1e-9))
        assert slope(step) == pytest.approx(1.0 - 0.9 * min(epochs_done, 4.0) / 4, abs=1e-7)
    assert isinstance(stairs, Schedule) and isinstance(slope, Schedule)


def test_13_rings_line_and_levels() -> None:
    """From all keys at step 0 to a tenth after 100 epochs, never up again; ten levels of equal length."""
    line = BetweenEpochs(Linear(1.0, 0.1, 100), steps_per_epoch=7)
    values = [line(step) for step in range(1000)]
    assert values[0] == 1.0 and set(values[700:]) == {0.1}
    assert all(a >= b for a, b in itertools.pairwise(values)) and len(set(values[:701])) == 701
    levels = ByEpoch(Linear(1.0, 0.1, 9), every=10.0, steps_per_epoch=3)
    shares = [round(levels(step), 9) for step in range(400)]
    assert [len(list(same)) for _, same in itertools.groupby(shares)] == [30] * 9 + [130]
    assert sorted(set(shares), reverse=True) == [round(1.0 - 0.1 * n, 9) for n in range(10)]


def test_courses_in_epochs_fit_the_data_set_and_stretch_with_the_run() -> None:
    course = BetweenEpochs(Linear(1.0, 0.1, 100)).fit_to(images=1000, batch_size=30)
    assert course.steps_per_epoch == 33
    longer = course.stretch(longer=2.0, finer=1.0)
    assert [longer(2 * step) for step in range(0, 4000, 90)] == pytest.approx([course(s) for s in range(0, 4000, 90)])
    halved = course.stretch(longer=1.0, finer=2.0)
    assert [halved(2 * step) for step in range(0, 4000, 90)] == pytest.approx([course(s) for s in range(0, 4000, 90)])


@pytest.mark.parametrize("epochs", [1, 10, 400])
def test_a_ramp_by_epoch_has_a_step_per_epoch_whatever_their_number(epochs: int) -> None:
    ramp = RampByEpoch(2.0, epochs=200).stretch(epochs / 200, 1.0).fit_to(images=900, batch_size=90)
    values = [[ramp(10 * epoch + step) for step in range(10)] for epoch in range(epochs)]
    assert all(len(set(row)) == 1 for row in values)
    assert [row[0] for row in values] == pytest.approx([2 * (epoch + 1) / epochs for epoch in range(epochs)])
    assert ramp(10 * epochs + 5) == 2.0


@pytest.mark.parametrize("changes", [{"every": 0.0}, {"steps_per_epoch": 0}])
def test_epochs_without_length_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(UserError, match="it must be"):
        ByEpoch(Constant(1.0), **changes)  # pyright: ignore
