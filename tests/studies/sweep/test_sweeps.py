"""Sweeps change what they say and nothing else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from known_pace import noise
from small_runs import small_run

import vantage
from vantage.composition.fields import differences
from vantage.composition.fitting import parts_of
from vantage.encoders import PerView
from vantage.errors import UserError
from vantage.estimators import JCL, InfoNCE
from vantage.progress import QuietProgress
from vantage.schedules import BetweenEpochs, Linear, StepDecay
from vantage.studies.sweep import (
    SPACES,
    BlurWidth,
    ColorSpaces,
    CropBound,
    Field,
    Fields,
    JitterStrength,
    Ladder,
    Operations,
    PatchDistance,
    Sweep,
    parse_fields,
)
from vantage.studies.sweep.checks import points_on, try_points
from vantage.training.run import Run
from vantage.views import Channels, ColorJitter, Frequencies, Patches, RandomResizedCrop, WithJigsaw, frequency_views
from vantage.views.augmentation import Augmentation, Views
from vantage.views.operations.color import Normalize

SWEEPS: tuple[Sweep, ...] = (
    CropBound(), JitterStrength(), PatchDistance(), BlurWidth(), ColorSpaces(), Ladder(), Operations(),
)  # fmt: skip


def recipe(sweep: Sweep, size: int = 64) -> Run:
    """The run that a sweep is usually made with."""
    return getattr(vantage, sweep.recipe)(size)


def paths(base: Run, other: Run) -> set[str]:
    """Where two runs differ."""
    return {path for path, _, _ in differences(base, other)}


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.name)
def test_only_views_change_and_every_point_is_another_run(sweep: Sweep) -> None:
    base = recipe(sweep)
    points = sweep.points(base)
    assert len(points) >= 5
    assert len({point.label for point in points}) == len(points) == len({point.run for point in points})
    for point in points:
        assert all(path.startswith("views") for path in paths(base, point.run))
        assert point.run.views.count == base.views.count
    assert sweep.axis


def test_crop_changes_the_lower_bound_of_both_crops_alone() -> None:
    base = vantage.moco_v2(64)
    for point in CropBound((0.05, 0.3)).points(base):
        assert paths(base, point.run) == {f"views.views.{view}.crop.scale.0" for view in (0, 1)}
        scales = [part.scale for part in parts_of(point.run.views) if isinstance(part, RandomResizedCrop)]
        assert scales == [(point.number, 1.0)] * 2


def test_the_crop_of_a_jigsaw_stays() -> None:
    base = vantage.infomin(64)
    (point,) = CropBound((0.6,)).points(base)
    assert isinstance(point.run.views, WithJigsaw) and isinstance(base.views, WithJigsaw)
    assert point.run.views.jigsaw == base.views.jigsaw
    assert point.run.views.views.views[0].crop.scale == (0.6, 1.0)  # pyright: ignore


@pytest.mark.parametrize("x", [0.125, 1.0, 2.5])
def test_jitter_scales_all_four_numbers_and_keeps_how_often(x: float) -> None:
    base = vantage.moco_v2(64)
    (point,) = JitterStrength((x,)).points(base)
    jitters = [part for part in parts_of(point.run.views) if isinstance(part, ColorJitter)]
    assert jitters == [ColorJitter(0.8 * x, 0.8 * x, 0.8 * x, 0.2 * x, 0.8)] * 2
    names = ("brightness", "contrast", "saturation", "hue")
    changed_paths = {f"views.views.{view}.operations.0.{name}" for view in (0, 1) for name in names}
    assert paths(base, point.run) == changed_paths


def test_jitter_of_simclr_is_its_own_strength() -> None:
    (point,) = JitterStrength((0.5,)).points(vantage.simclr(64))
    assert point.run == vantage.simclr(64)


def test_distances_make_patches_with_the_normalization_of_the_run() -> None:
    base = vantage.simclr(64)
    points = PatchDistance((0, 24), patch=20).points(base)
    last = [part for part in parts_of(base.views) if isinstance(part, Normalize)][-1]
    assert [point.run.views for point in points] == [Patches(20, 0, (last,)), Patches(20, 24, (last,))]
    assert "20 px" in PatchDistance(patch=20).axis


def test_blur_changes_its_width_alone() -> None:
    one, two = BlurWidth((0.5, 2.0)).points(vantage.simclr(64))
    assert paths(one.run, two.run) == {"views.sigma"}
    assert isinstance(one.run.views, Frequencies) and one.run.views.sigma == 0.5
    assert one.run.views.view.crop == vantage.simclr(64).views.views[0].crop  # pyright: ignore


def test_networks_for_channels_see_both_bands_in_color() -> None:
    """The paper contrasts bands as it contrasts channels, with a network for each (B.3)."""
    base = vantage.cmc_softmax(64)
    (point,) = BlurWidth((0.5,)).points(base)
    backbones = {f"encoders.encoders.{number}.backbone.in_channels" for number in (0, 1)}
    assert {path for path in paths(base, point.run) if not path.startswith("views")} == backbones
    assert point.run.views == frequency_views(64, 0.5), "normalized as RGB, not as Lab"
    try_points(BlurWidth((0.5,)).points(small_run("cmc_softmax", "")), noise(160, 32), QuietProgress())


def test_color_spaces_come_with_their_statistics() -> None:
    base = vantage.cmc_softmax(64)
    names = tuple(type(space).__name__ for space in SPACES)
    for point, space in zip(ColorSpaces(names).points(base), SPACES, strict=True):
        assert isinstance(point.run.views, Channels) and isinstance(point.run.encoders, PerView)
        convert, normalize = point.run.views.view.operations[-2:]
        assert convert.space == space  # pyright: ignore[reportAttributeAccessIssue]
        assert normalize == space.statistics.normalize()
        assert point.run.views.channels == ((0,), (1, 2))
        assert (point.label, point.number) == (type(space).__name__, None)
    assert ColorSpaces(("Lab",)).points(base)[0].run == base


@pytest.mark.parametrize("sweep", [Ladder(), Operations()])
def test_steps_are_cumulative(sweep: Sweep) -> None:
    points = sweep.points(vantage.moco_v2(64))
    lists = [[view.operations for view in point.run.views.views] for point in points]  # pyright: ignore
    for number, (first, second) in enumerate(lists):
        assert first == second
        assert len(first) == number + 1  # this many operations, then the normalization
        assert isinstance(first[-1], Normalize)
        if number:
            assert first[: number - 1] == lists[number - 1][0][:-1]
    assert [point.number for point in points] == list(range(len(points)))


def test_the_ladder_ends_at_infomin_and_operations_at_the_run() -> None:
    base = vantage.moco_v2(64)
    assert Ladder().points(base)[-1].run.views == vantage.views.infomin_views(64)
    assert [point.label for point in Ladder().points(base)] == [
        "0 crop", "1 + HorizontalFlip", "2 + ColorJitter", "3 + GaussianBlur", "4 + RandAugment", "5 + Grayscale",
    ]  # fmt: skip
    assert Operations().points(base)[-1].run == base
    assert [point.label for point in Operations((2, 0)).points(base)] == ["2 + Grayscale", "0 crop"]


@pytest.mark.parametrize(
    ("words", "changed_paths"),
    [
        ("crop.scale.0=0.1", {"views.views.0.crop.scale.0", "views.views.1.crop.scale.0"}),
        ("views.1.crop.scale=(0.1,0.9)", {"views.views.1.crop.scale.0", "views.views.1.crop.scale.1"}),
        ("estimator.temperature=0.5", {"branches.0.estimator.temperature"}),
        ("batch_size=32", {"batch_size", "learning_rate.base"}),
        ("encoders.encoder.backbone.depth=34", {"encoders.encoder.backbone.depth"}),
        ("negatives=(OtherImages(), Ring())", {"branches.0.negatives"}),
        ("branches.0.estimator=Decoupled(0.1)", {"branches.0.estimator"}),
    ],
)
def test_any_field_by_the_end_of_its_path(words: str, changed_paths: set[str]) -> None:
    base = vantage.moco_v2(64)
    (point,) = parse_fields(words).points(base)
    assert paths(base, point.run) == changed_paths


def test_values_of_fields_are_read_as_python_writes_them() -> None:
    assert parse_fields("a.b = 1, 0.5,(1,2),[3,(4,5)],word") == Field("a.b", ("1", "0.5", "(1,2)", "[3,(4,5)]", "word"))
    points = parse_fields("crop.scale=(0.1,1),(0.3,1)").points(vantage.moco_v2(64))
    assert [(point.label, point.number) for point in points] == [("(0.1,1)", None), ("(0.3,1)", None)]
    (whole,) = parse_fields("crop.size=32").points(vantage.moco_v2(64))
    assert (whole.label, whole.number) == ("32", 32.0)


def test_several_fields_move_together_value_by_value() -> None:
    base = vantage.moco_v2(64)
    sweep = parse_fields("estimator=InfoNCE(0.1),JCL(0.2)", "epochs=100,200")
    assert sweep == Fields(("estimator", "epochs"), (("InfoNCE(0.1)", "100"), ("JCL(0.2)", "200")))
    first, second = sweep.points(base)
    assert (first.run.branches[0].estimator, first.run.epochs) == (InfoNCE(0.1), 100)
    assert (second.run.branches[0].estimator, second.run.epochs) == (JCL(0.2), 200)
    assert (second.label, sweep.axis) == ("JCL(0.2), 200", "estimator, epochs")


def test_schedules_follow_epochs_and_batch_size() -> None:
    base = vantage.ring_moco(32).fit(images=1_000).rescale(epochs=20)
    sweep = parse_fields("epochs=10,40", "batch_size=64,128")
    assert [point.run for point in sweep.points(base)] == [base.rescale(64, 10), base.rescale(128, 40)]
    assert sweep.points(base)[0].run.learning_rate != base.learning_rate
    own, given = parse_fields("epochs=10", "learning_rate=StepDecay(0.03, 0.1, (2, 4))"), StepDecay(0.03, 0.1, (2, 4))
    assert own.points(base)[0].run.learning_rate == given


def test_schedules_among_the_values_count_the_epochs_of_the_images() -> None:
    images = noise(160, 8)
    base, line = vantage.moco_v2(32).fit(len(images)), BetweenEpochs(Linear(0.0, 1.0, 2))
    sweep = parse_fields("weight=BetweenEpochs(Linear(0.0, 1.0, 2)),1.0")
    first, second = points_on(images, sweep, base)
    assert first.run.branches[0].weight == replace(line, steps_per_epoch=base.steps_per_epoch(160))
    assert second.run == base


def test_doubts_about_values_are_told_with_them() -> None:
    """They were lost in a sweep, though not in `pretrain`: JCL with one key was compared as if it was another loss."""

    class Lines(QuietProgress):
        def line(self, text: str) -> None:
            lines.append(text)

    images, lines, base = noise(160, 32), list[str](), small_run("moco_v2", "")
    try_points(parse_fields("estimator=InfoNCE(0.1),JCL(0.2)").points(base), images, Lines())
    assert len(lines) == 1 and lines[0].startswith(
        "JCL(0.2): branch 0 gives each query one positive, so JCL is InfoNCE"
    )


def test_a_grid_has_every_combination_and_the_last_field_varies_fastest() -> None:
    base = vantage.moco_v2(64)
    sweep = parse_fields("temperature=0.1,0.3", "epochs=10,20,30", grid=True)
    points = sweep.points(base)
    assert [(point.run.branches[0].estimator.temperature, point.run.epochs) for point in points] == [  # pyright: ignore
        (t, e) for t in (0.1, 0.3) for e in (10, 20, 30)
    ]
    assert [point.label for point in points][:2] == ["0.1, 10", "0.1, 20"]
    assert {point.number for point in points} == {None}  # no line may connect them
    assert sweep.axis == "temperature, epochs"
    together = parse_fields("temperature=0.1,0.3", "epochs=10,30")
    assert {point.run for point in together.points(base)} < {point.run for point in points}


CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: CropBound((0.0,)).points(vantage.moco_v2(64)), r"crop cannot be 0: a crop's scale"),
    (lambda: CropBound(()).points(vantage.moco_v2(64)), "give at least one"),
    (lambda: CropBound((0.1, 0.1)).points(vantage.moco_v2(64)), "each only once"),
    (lambda: JitterStrength((3.0,)).points(vantage.moco_v2(64)), "jitter cannot be 3: give strengths from 0 to 2.5"),
    (lambda: JitterStrength().points(vantage.cmc(64)), "views of cmc hold no ColorJitter"),
    (lambda: BlurWidth((0.0,)).points(vantage.simclr(64)), "blur cannot be 0"),
    (lambda: ColorSpaces(("Lba",)).points(vantage.cmc(64)), "no color space 'Lba'; did you mean Lab?"),
    (lambda: ColorSpaces().points(vantage.moco_v2(64)), "are not channels of a color space: take a recipe such as"),
    (lambda: ColorSpaces(("Lab", "Lab")).points(vantage.cmc(64)), "each only once"),
    (lambda: Ladder((6,)).points(vantage.moco_v2(64)), r"steps 0 to 5, but \(6,\)"),
    (lambda: Ladder().points(vantage.cmc(64)), "the ladder replaces views that are augmentations of one image"),
    (lambda: Operations().points(PatchDistance((4,)).points(vantage.simclr(64))[0].run), "added one by one"),
    (lambda: parse_fields("crop.scale.0").points(vantage.moco_v2(64)), "names no field and values"),
    (lambda: parse_fields("crop.scael=0.1").points(vantage.moco_v2(64)), "no field 'crop.scael'; did you mean"),
    (lambda: parse_fields("crop.scale.0=2").points(vantage.moco_v2(64)), r"crop.scale.0 cannot be 2: a crop's scale"),
    (
        lambda: parse_fields("temperature=0.1", "estimator=InfoNCE(0.2)").points(vantage.moco_v2(64)),
        "temperature is set, but estimator after it replaces it",
    ),
    (lambda: parse_fields("crop.size=a").points(vantage.moco_v2(64)), "expected a whole number, found a"),
    (lambda: parse_fields("crop.size=1,1").points(vantage.moco_v2(64)), "each only once"),
    (
        lambda: parse_fields("estimator=Ring()").points(vantage.moco_v2(64)),
        "estimator: expected Estimator .*found the part Ring",
    ),
    (lambda: parse_fields("epochs=1,2", "crop.size=8"), "the same number of values, but epochs has 2, crop.size has 1"),
    (lambda: parse_fields("epochs=1,2", "crop.size=8"), "ask for every combination with --grid"),
    (lambda: parse_fields("epochs=1,2", grid=True), "a grid combines several fields, but only epochs was given"),
    (lambda: parse_fields("epochs=1,1", "crop.size=8", grid=True), "the values of epochs are .* each only once"),
    (lambda: parse_fields("seed=1,2").points(vantage.moco_v2(64)), "no field 'seed'"),
]


@pytest.mark.parametrize(("wrong", "message"), CASES, ids=range(len(CASES)))
def test_values_that_do_not_fit_are_reported(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        wrong()


def test_the_ladder_needs_no_operation_in_the_views_that_it_replaces() -> None:
    base = vantage.moco_v2(64)
    bare = Views(tuple(replace(view, operations=()) for view in parts_of(base.views) if isinstance(view, Augmentation)))
    assert Ladder().points(replace(base, views=bare))[-1].run == Ladder().points(base)[-1].run


def test_a_sweep_of_a_sweep() -> None:
    """Points are runs, so one may be the base of another sweep."""
    (weak,) = JitterStrength((0.125,)).points(vantage.moco_v2(64))
    for point in CropBound((0.1, 0.9)).points(weak.run):
        assert replace(point.run, views=weak.run.views) == weak.run
        assert ColorJitter(0.1, 0.1, 0.1, 0.025, 0.8) in parts_of(point.run.views)
