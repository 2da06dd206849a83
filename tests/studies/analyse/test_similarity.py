"""JCL's similarities and variances against loops over pairs, and on a trained run."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import run_of, work
from torch import Tensor
from torch.nn.functional import normalize

from vantage.data import Source
from vantage.errors import UserError
from vantage.frozen.networks import trained_networks
from vantage.studies.analyse.augmentation import augmented_vectors, draw_numbers
from vantage.studies.analyse.similarity import Similarities, Similarity, WithinImages, within_image


def slow(vector: Tensor) -> tuple[float, float]:
    """Supplement §5 as it is written: all a × a cosines, and the diagonal of the covariance."""
    count, width = vector.shape
    cosines = [float(sum(u[k] * v[k] for k in range(width))) for u in vector for v in vector]
    mean = [sum(float(v[k]) for v in vector) / count for k in range(width)]
    diagonal = [sum((float(v[k]) - mean[k]) ** 2 for v in vector) / count for k in range(width)]
    return sum(cosines) / len(cosines), sum(diagonal) / width


def test_both_numbers_are_those_of_loops_over_pairs_and_dimensions() -> None:
    vector = normalize(torch.randn(3, 5, 4, dtype=torch.float64), dim=2)
    similarity, variance = within_image(vector)
    for number, one in enumerate(vector):
        expected = slow(one)
        assert float(similarity[number]) == pytest.approx(expected[0], abs=1e-12)
        assert float(variance[number]) == pytest.approx(expected[1], abs=1e-12)
    assert torch.allclose(variance, (1 - similarity) / 4, atol=1e-12)


def test_equal_augmentations_are_wholly_alike_and_opposite_ones_leave_the_self_pairs() -> None:
    one = normalize(torch.randn(1, 1, 6), dim=2)
    similarity, variance = within_image(torch.cat([one.expand(1, 4, 6), torch.cat([one, -one, one, -one], 1)]))
    assert similarity.tolist() == pytest.approx([1.0, 0.0], abs=1e-6)
    assert variance.tolist() == pytest.approx([0.0, 1 / 6], abs=1e-6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("jcl", tmp_path_factory.mktemp("jcl"), epochs=1)


def test_augmentations_follow_from_the_image_and_the_seed_alone(run: tuple[Path, Source]) -> None:
    one, source = trained_networks(run[0]), run[1]
    some = torch.tensor([3, 17, 40])
    vectors = [torch.cat(list(augmented_vectors(one, source, some, 0, 4, 5, work(batch)))) for batch in (4, 64)]
    assert torch.allclose(vectors[0], vectors[1], atol=1e-6)
    alone = torch.cat(list(augmented_vectors(one, source, some[1:2], 0, 4, 5, work())))
    assert torch.allclose(alone, vectors[0][1:2], atol=1e-6)
    other = torch.cat(list(augmented_vectors(one, source, some, 0, 4, 6, work())))
    assert not torch.allclose(other, vectors[0], atol=1e-3)
    assert torch.allclose(vectors[0].norm(dim=2), torch.ones(3, 4), atol=1e-5)
    assert not torch.allclose(vectors[0][:, 0], vectors[0][:, 1], atol=1e-3)


def test_a_missing_view_is_refused(run: tuple[Path, Source]) -> None:
    with pytest.raises(UserError, match="view 9 was asked for, but the run makes 6"):
        list(augmented_vectors(trained_networks(run[0]), run[1], torch.arange(2), 9, 2, 0, work()))


def test_images_are_drawn_once_each() -> None:
    assert draw_numbers(48, 100, 0).tolist() == list(range(48))
    few = draw_numbers(48, 10, 0)
    assert len(few.unique()) == 10 and not torch.equal(few, draw_numbers(48, 10, 1))


def test_a_run_is_compared_with_a_random_encoder(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    findings = Similarity(images=12, augmentations=4)([one, replace(one, name="again")], run[1], work())
    first, again, random = findings.encoders
    assert [e.name for e in findings.encoders] == ["jcl", "again", "random encoder"]
    assert torch.equal(first.similarity, again.similarity) and not torch.allclose(first.similarity, random.similarity)
    image = draw_numbers(48, 12, 0)
    vector = torch.cat(list(augmented_vectors(one, run[1], image, 0, 4, 0, work())))
    assert float(first.similarity[7]) == pytest.approx(slow(vector[7].double())[0], abs=1e-5)
    rows = findings.table()
    assert len(rows) == 6 and rows[0]["mean"] == pytest.approx(float(first.similarity.mean()))
    assert "self pairs among them" in " ".join(findings.lines())


def test_the_picture_shows_every_encoder_in_both_panels() -> None:
    spreads = tuple(WithinImages(name, torch.rand(20).double(), torch.rand(20).double()) for name in ("one", "two"))
    panels = Similarities(spreads, 32).figure().axes
    for panel, values in zip(panels, zip(*((s.similarity, s.variance) for s in spreads), strict=True), strict=True):
        assert panel.get_legend_handles_labels()[1] == ["one", "two"]
        for bar_shape, value in zip(panel.patches, values, strict=True):
            heights, edges, _ = bar_shape.get_data()
            assert len(heights) == 50 and heights.sum() == pytest.approx(100)
            inside = ((value >= edges[3]) & (value < edges[4])).double().mean()
            assert heights[3] == pytest.approx(100 * float(inside))
    assert "32 × 32" in panels[0].get_xlabel()


def test_a_histogram_that_would_hide_the_others_is_cut_off_with_a_note() -> None:
    wide, narrow = torch.linspace(0, 1, 100).double(), torch.full((100,), 0.5).double()
    panel = (
        Similarities((WithinImages("wide", wide, wide), WithinImages("narrow", narrow, narrow)), 32).figure().axes[0]
    )
    assert panel.get_legend_handles_labels()[1] == ["wide", "narrow (cut off, up to 100 %)"]
    assert panel.get_ylim()[1] < 10


@pytest.mark.parametrize("field", ["images", "augmentations", "bins"])
def test_settings_that_make_no_sense_are_refused(field: str) -> None:
    with pytest.raises(UserError, match=f"{field} is 0"):
        Similarity(**{field: 0})
