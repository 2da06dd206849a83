import hypothesis
import hypothesis.strategies as st
import pytest
import torch
from references.moving import walk

from vantage.studies.moving_mnist import digit_positions, reflect


@hypothesis.given(st.integers(0, 2**31), st.floats(0.1, 100.0), st.floats(1.0, 60.0))
def test_reflections_equal_a_walk_frame_by_frame(seed: int, speed: float, room: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    start = torch.rand(4, 2, dtype=torch.float64, generator=generator) * room
    direction = torch.rand(4, dtype=torch.float64, generator=generator) * 2 * torch.pi
    path = digit_positions(start, direction, 20, speed, room)
    slow = [
        walk((float(x), float(y)), float(angle), 20, speed, room)
        for (x, y), angle in zip(start, direction, strict=True)
    ]
    torch.testing.assert_close(path, torch.tensor(slow, dtype=torch.float64), rtol=0, atol=1e-9 * (speed + room))


def test_motion_is_straight_and_of_constant_speed_until_it_meets_a_wall() -> None:
    path = digit_positions(torch.tensor([[10.0, 10.0]]), torch.tensor([0.0]), 6, 6.4, 36.0)[0]
    torch.testing.assert_close(path[:, 0], torch.tensor([10.0, 16.4, 22.8, 29.2, 35.6, 30.0]))
    assert (path[:, 1] == 10).all()


@pytest.mark.parametrize(("free", "where"), [(0.0, 0.0), (36.0, 36.0), (37.0, 35.0), (-1.0, 1.0), (73.0, 1.0)])
def test_walls_turn_the_motion_round(free: float, where: float) -> None:
    assert reflect(torch.tensor(free), 36.0).item() == where
