"""Where a band lies: ranks and percentiles by hand, cosines against a sort, on trained runs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import run_of, work
from small_runs import small_run, write_images

from vantage.data import Source, SourceSubset, open_source
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks, trained_networks
from vantage.negatives import AbsoluteRing, Ball, Ring, Rule
from vantage.schedules import Constant, FollowsLoss, Linear
from vantage.studies.analyse import band as band_module
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.band import Band, BandTable, Cuts, RunBand, epoch_rows
from vantage.studies.analyse.queries import queries
from vantage.training.loop import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("ring_ir", tmp_path_factory.mktemp("ring"))


def with_rules(one: TrainedNetworks, *rules: Rule, epochs: int = 2) -> TrainedNetworks:
    """The run, had it these rules."""
    return replace(one, run=replace(one.run, branches=(replace(one.run.branches[0], negatives=rules),), epochs=epochs))


def test_percentiles_follow_the_schedules(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    assert one.steps_per_epoch == 6
    rows = epoch_rows(with_rules(one, Ring(Linear(1.0, 0.5, 12), Constant(0.1))), 0, 0, 1000)
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert [row["keep"] for row in rows] == pytest.approx([1.0, 0.75, 0.5])
    assert [(row["inner_rank"], row["outer_rank"]) for row in rows] == [(100, 1000), (75, 750), (50, 500)]
    assert [row["w_l"] for row in rows] == pytest.approx([0.0, 25.0, 50.0])
    assert [row["w_u"] for row in rows] == pytest.approx([90.0, 92.5, 95.0])


def test_each_kind_of_band_has_its_own_percentiles(run: tuple[Path, Source]) -> None:
    one, fifth = trained_networks(run[0]), Constant(0.2)
    expected = {Ring(fifth, fifth): (80, 96), AbsoluteRing(fifth, Constant(0.1)): (80, 90), Ball(fifth): (80, 100)}
    for rule, percentiles in expected.items():
        last = epoch_rows(with_rules(one, rule), 0, 0, 1000)[-1]
        assert (last["w_l"], last["w_u"]) == pytest.approx(percentiles), rule
        assert last["drop"] == (None if isinstance(rule, Ball) else pytest.approx(rule.drop(0)))


def test_cosines_at_the_cuts_are_those_of_a_sort(run: tuple[Path, Source]) -> None:
    one, source = with_rules(trained_networks(run[0]), Ring(Constant(0.5), Constant(0.25))), run[1]
    (band,) = Band(images=9, seed=3)([one], source, work()).bands
    query = queries(one, source, draw_numbers(48, 9, 3), 0, 3, work())
    ordered_cosines = (query.vector @ one.pool(0).vector.T).sort(dim=1, descending=True).values
    assert band.cuts is not None
    assert torch.allclose(band.cuts.inner, ordered_cosines[:, 6]) and torch.allclose(
        band.cuts.outer, ordered_cosines[:, 23]
    )
    assert int(band.cuts.histogram.sum()) == 9 * 48
    assert band.epochs[-1]["keys"] == 48 and band.current_epoch == 2.0


def test_bands_of_one_view_share_their_queries(run: tuple[Path, Source], monkeypatch: pytest.MonkeyPatch) -> None:
    one, encoded = with_rules(trained_networks(run[0]), Ball(Constant(0.5)), Ring(Constant(0.5))), list[int]()
    monkeypatch.setattr(
        band_module, "queries", lambda *words, **others: encoded.append(words[3]) or queries(*words, **others)
    )
    first, second = Band(images=9)([one], run[1], work()).bands
    assert encoded == [0] and first.cuts is not None and second.cuts is not None


def test_a_run_on_a_bank_has_a_table_and_lines(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    findings = Band()([one, replace(one, name="again")], run[1], work())
    rows = findings.table()
    assert [row["band"] for row in rows] == ["ring_ir"] * 3 + ["again"] * 3 + ["ring_ir"] * 2 + ["again"] * 2
    outer, inner = rows[6], rows[7]
    assert (outer["cosine_at"], inner["cosine_at"], outer["queries"]) == ("outer cut", "inner cut", 48)
    for at in ("5%", "median", "95%"):
        assert -1 <= outer[at] <= inner[at] <= 1 + 1e-6
    assert any(line.startswith("ring_ir") and "inner cut" in line for line in findings.lines())


def test_earlier_rules_leave_fewer_keys(tmp_path: Path) -> None:
    folder, source = run_of("interclr", tmp_path)
    one = trained_networks(folder)
    (band,) = Band()([one], source, work()).bands
    label = one.pool(0).clusters[:, 0]
    counts = torch.tensor([int((label != mine).sum()) for mine in label])
    assert band.epochs[0]["keys"] == int(counts.median()) < 48
    assert band.cuts is not None and int(band.cuts.histogram.sum()) == int(counts.sum())


def test_keys_of_the_batch_leave_no_cosines(tmp_path: Path) -> None:
    folder, source = run_of("simclr", tmp_path, epochs=1)
    one = trained_networks(folder)
    branches = tuple(replace(branch, negatives=(Ball(),)) for branch in one.run.branches)
    findings = Band()([replace(one, run=replace(one.run, branches=branches))], source, work())
    assert [band.name for band in findings.bands] == ["simclr, branch 0", "simclr, branch 1"]
    assert all(band.cuts is None and band.epochs[0]["keys"] == 16 for band in findings.bands)
    assert "no keys are remembered" in [text.get_text() for text in findings.figure().axes[1].texts]


def test_of_numbers_that_adapt_only_the_past_is_known(run: tuple[Path, Source], tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1, "step": 6, "adapted.0": 0.8}\n')
    one = with_rules(trained_networks(run[0]), Ring(FollowsLoss()))
    one.learner.adaptive, state = [FollowsLoss()], FollowsLoss().build()
    state.value.fill_(0.7)
    one.learner.adapted.append(state)
    one = replace(one, folder=tmp_path)
    assert [(row["epoch"], row["keep"]) for row in epoch_rows(one, 0, 0, 100)] == [(0, 1.0), (1, 0.8)]
    assert one.branches[0].negatives == (Ring(Constant(0.7)),)


def test_a_run_on_a_part_of_its_images_is_read_with_that_part(tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    settings = small_run("ring_moco", path, epochs=1)
    train(replace(settings, data=replace(settings.data, hold_out=0.25, max_images=24)), tmp_path / "run")
    one, source = trained_networks(tmp_path / "run"), open_source(path)
    assert len(source) == 48 and len(one.trained_on(source)) == 24
    (band,) = Band(images=8)([one], source, work()).bands
    assert band.cuts is not None
    assert one.trained_on(one.trained_on(source)).fingerprint() == one.fingerprint
    with pytest.raises(UserError, match="was trained on 24 images"):
        one.trained_on(SourceSubset(source, range(12)))


def test_a_run_without_a_band_is_refused(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    with pytest.raises(UserError, match="ring_ir has no band"):
        Band()([with_rules(one)], run[1], work())
    with pytest.raises(UserError, match="was trained on 48 images"):
        Band()([one], SourceSubset(run[1], range(12)), work())
    with pytest.raises(UserError, match="images is 0"):
        Band(images=0)


def test_the_picture_has_a_row_for_each_band() -> None:
    epochs = [{"epoch": n, "keep": 0.5, "drop": 0.1, "keys": 9, "w_l": 50.0, "w_u": 90.0 + n} for n in range(3)]
    cuts = Cuts(torch.rand(8) / 2, 0.5 + torch.rand(8) / 2, torch.ones(400))
    figure = BandTable((RunBand("one", epochs, 1.5, cuts), RunBand("two", epochs, 2.0, cuts))).figure()
    assert len(figure.axes) == 4
    upper = figure.axes[0].lines[0]
    assert upper.get_ydata().tolist() == [90, 91, 92] and upper.get_label() == "$w_u$: inner cut"
    assert figure.axes[1].get_title() == "Cosines at epoch 1.5"
