"""A plan mirrors views only if mirror images of the images could be images."""

import numpy as np
import pytest
from known_pace import Pace, noise

from vantage import moco_v2
from vantage.composition.fitting import parts_of
from vantage.data import Arrays
from vantage.planning import plan
from vantage.planning.mirror import asymmetry, is_symmetric
from vantage.planning.plan import make_plan, rows
from vantage.training.run import Run
from vantage.views.operations.flip import HorizontalFlip


def leaning(count: int = 200, side: int = 32) -> Arrays:
    """Noise that is brighter at the left."""
    pixels = np.random.default_rng(0).integers(0, 60, (count, side, side, 3))
    pixels[:, :, : side // 2] += 100
    return Arrays(pixels.astype(np.uint8), None, "leaning")


def flips(run: Run) -> set[float]:
    return {part.probability for part in parts_of(run.views) if isinstance(part, HorizontalFlip)}


def test_asymmetry_is_an_unbiased_share_of_the_difference() -> None:
    """Against a loop over pairs of images: E d·d′ / E‖d‖²."""
    random = np.random.default_rng(1)
    pixels = random.integers(0, 200, (80, 16, 16, 3)) + np.arange(16)[None, None, :, None]
    source = Arrays(pixels.astype(np.uint8), None, "tilted")
    gray = source.pixels.astype(float).mean(-1) if hasattr(source, "pixels") else pixels.astype(np.uint8).mean(-1)
    difference = (gray - gray[:, :, ::-1]).reshape(80, -1)
    products = [difference[i] @ difference[j] for i in range(80) for j in range(80) if i != j]
    power = (difference**2).sum(1).mean()
    assert asymmetry(source) == pytest.approx(np.mean(products) / power, rel=1e-4)


def test_noise_is_symmetric_and_a_lean_is_not() -> None:
    assert is_symmetric(noise(300)) and abs(asymmetry(noise(300))) < 0.01
    assert not is_symmetric(leaning()) and asymmetry(leaning()) > 0.5
    assert is_symmetric(leaning(40)), "too few to tell"
    black = Arrays(np.zeros((100, 8, 8, 3), np.uint8), None, "black")
    assert asymmetry(black) == 0.0


def test_plans_mirror_views_of_symmetric_images_only() -> None:
    assert flips(plan(noise(300), 5.0, measure=Pace())) == {0.5}
    result = make_plan(leaning(), 5.0, measure=Pace())
    assert flips(result.run) == flips(result.longer) == {0.0}
    assert dict(rows(result))["network"].endswith("px, never mirrored")


def test_a_recipe_that_is_named_and_what_is_set_keep_their_flips() -> None:
    assert flips(plan(leaning(), 5.0, moco_v2, measure=Pace())) == {0.5}
    path = "views.views.0.operations.0.probability"
    changed = plan(leaning(), 5.0, measure=Pace(), changes={path: 0.3})
    assert flips(changed) == {0.0, 0.3}
