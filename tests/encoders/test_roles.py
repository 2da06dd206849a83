"""Roles: which network encodes queries and which encodes keys."""

import pytest
import rank_cases
import small_recipes
import torch
from references import memory as reference
from torch import Tensor, nn
from torch.testing import assert_close

from vantage.encoders import BatchNorm, Encoder, LinearHead, Momentum, PerView, Shared, SplitBatchNorm
from vantage.encoders.roles import RoleNetworks
from vantage.errors import UserError
from vantage.schedules import Constant
from vantage.schedules import Linear as Line

PLAIN = Encoder(small_recipes.TwoLayers(False), LinearHead(6))
NORMALIZED = Encoder(small_recipes.TwoLayers(), LinearHead(6), SplitBatchNorm(2))


def views(count: int = 2, rows: int = 8) -> dict[int, Tensor]:
    return {n: torch.randn(rows, 3, 6, 6, generator=torch.Generator().manual_seed(n)) for n in range(count)}


def keys_of(networks: RoleNetworks, views: dict[int, Tensor], queries: dict[int, Tensor], seed: int):
    return networks.keys(views, queries, networks.orders(views, seed))


def test_shared_encodes_each_view_once_and_keys_learn():
    networks, calls = Shared(PLAIN).build(), []
    networks.network.register_forward_hook(lambda *_: calls.append(1))
    queries = networks.queries(views())
    keys = keys_of(networks, views(), queries, 0)
    assert len(calls) == 1, "two views of one size go through the network in one pass, and keys are these vectors"
    assert all(keys[n] is queries[n] for n in range(2))
    assert keys[1].requires_grad
    alone = keys_of(networks, {1: views()[1]}, {}, 0)
    assert_close(alone[1], queries[1])


def test_views_of_other_sizes_go_by_themselves():
    networks = Shared(PLAIN).build()
    several = views() | {2: torch.randn(8, 3, 4, 4)}
    queries = networks.queries(several)
    for number, view in several.items():
        assert_close(queries[number], networks.network(view))


def test_per_view_has_a_network_for_each_view():
    networks = PerView((PLAIN, PLAIN)).build()
    queries = networks.queries({0: views()[0]})
    keys = keys_of(networks, views(), queries, 0)
    assert keys[0] is queries[0] and keys[1].requires_grad
    assert_close(keys[1], networks.encoders[1](views()[1]))
    assert len(networks.encoders) == 2
    with pytest.raises(UserError, match="make them equal"):
        PerView((PLAIN, Encoder(small_recipes.TwoLayers(False), LinearHead(5)))).build()
    with pytest.raises(UserError, match="no encoders"):
        PerView(())


def numbers(module: nn.Module) -> list[float]:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()]).tolist()


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("after", [False, True])
def test_18_the_slow_network_follows(momentum: float, after: bool):
    networks = Momentum(PLAIN, Constant(momentum), after).build().double()
    assert numbers(networks.slow) == numbers(networks.network), "it starts as a copy"
    assert not any(parameter.requires_grad for parameter in networks.slow.parameters())
    with torch.no_grad():
        for parameter in networks.network.parameters():
            parameter.add_(torch.randn_like(parameter))
    before, fast = numbers(networks.slow), numbers(networks.network)
    (networks.before_step if after else networks.after_step)(0)
    assert numbers(networks.slow) == before, "it moves once a step"
    (networks.after_step if after else networks.before_step)(0)
    assert numbers(networks.slow) == pytest.approx(reference.slow(before, fast, momentum), rel=0, abs=1e-14)
    if momentum in (0.0, 1.0):
        assert numbers(networks.slow) == (fast if momentum == 0 else before)


def test_momentum_may_follow_the_step():
    networks = Momentum(PLAIN, Line(1.0, 0.0, 10)).build()
    with torch.no_grad():
        networks.network.head.weight.add_(1.0)  # pyright: ignore
    before = numbers(networks.slow)
    networks.before_step(0)
    assert numbers(networks.slow) == before
    networks.before_step(10)
    assert numbers(networks.slow) == numbers(networks.network)


def test_only_parameters_follow_and_statistics_are_its_own():
    networks = Momentum(NORMALIZED, Constant(0.0)).build()
    queries = networks.queries({0: views()[0]})
    keys_of(networks, {1: views()[1] * 5}, queries, 3)
    fast = dict(networks.network.named_buffers())["backbone.1.running_var"].clone()
    slow = dict(networks.slow.named_buffers())["backbone.1.running_var"].clone()
    assert not torch.allclose(fast, slow)
    networks.before_step(0)
    assert torch.equal(dict(networks.slow.named_buffers())["backbone.1.running_var"], slow)


def test_keys_of_a_slow_network_have_no_gradient_and_keep_their_order():
    """In evaluation BatchNorm does not mix images, so the shuffle must leave no trace."""
    networks = Momentum(NORMALIZED).build().eval()
    keys = keys_of(networks, views(), {}, 5)
    assert not keys[0].requires_grad
    for number, view in views().items():
        assert_close(keys[number], networks.slow(view))


def test_shuffle_mixes_the_groups():
    """Keys are normalized with other images than their queries, and with others for another seed."""
    networks = Momentum(NORMALIZED, Constant(1.0)).build()
    straight = networks.slow(views()[1]).detach()
    shuffled_keys = [keys_of(networks, {1: views()[1]}, {}, seed)[1] for seed in (1, 2)]
    assert not torch.allclose(straight, shuffled_keys[0], atol=1e-4)
    assert not torch.allclose(shuffled_keys[0], shuffled_keys[1], atol=1e-4)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    assert_close(shuffled_keys[0], networks.slow(views()[1][order]).detach()[order.argsort()])


def test_keys_are_shuffled_one_by_one_if_asked():
    """JCL's supplement, section 3: N × M' keys, concatenated and shuffled. Slow loop: permute, encode each group, put
    back."""
    apart = Momentum(NORMALIZED, Constant(1.0), shuffle="keys").build()
    together = Momentum(NORMALIZED, Constant(1.0)).build()
    together.load_state_dict(apart.state_dict())
    five = {n + 1: view for n, view in views(5).items()}
    keys = keys_of(apart, five, {}, 7)
    rows = [five[number][image] for image in range(8) for number in five]  # the keys of an image lie side by side
    order = torch.randperm(40, generator=torch.Generator().manual_seed(7)).tolist()
    straight = Encoder(small_recipes.TwoLayers(), LinearHead(6), BatchNorm()).build()
    straight.load_state_dict(apart.slow.state_dict())
    encoded_halves = [straight(torch.stack([rows[position] for position in half])) for half in (order[:20], order[20:])]
    expected: dict[int, Tensor] = dict(zip(order, torch.cat(encoded_halves).detach(), strict=True))
    for position, number in enumerate(five):
        for image in range(8):
            assert_close(keys[number][image], expected[5 * image + position])
    blocks = keys_of(together, five, {}, 7)
    assert not torch.allclose(keys[1], blocks[1], atol=1e-4)
    one = {1: five[1]}
    assert torch.equal(keys_of(apart, one, {}, 7)[1], keys_of(together, one, {}, 7)[1]), (
        "of one key an image it is the same"
    )


def test_without_groups_on_one_process_a_shuffle_would_change_nothing():
    networks = Momentum(Encoder(small_recipes.TwoLayers(), LinearHead(6), BatchNorm())).build()
    assert_close(keys_of(networks, {1: views()[1]}, {}, 1)[1], networks.slow(views()[1]))


def test_joint_encoding_keeps_the_views_of_an_image_in_one_group():
    """Two groups of the joint batch are the two halves of the images, each with both views: what two processes hold."""
    networks = Shared(NORMALIZED).build()
    whole = networks.queries(views())
    for half in (slice(0, 4), slice(4, 8)):
        single = Shared(Encoder(small_recipes.TwoLayers(), LinearHead(6), BatchNorm())).build()
        single.load_state_dict(networks.state_dict())
        part = single.queries({n: view[half] for n, view in views().items()})
        for number in range(2):
            assert_close(part[number], whole[number][half])


def test_the_two_process_cases_cover_roles_with_batch_statistics():
    kinds = {type(run.encoders) for run in rank_cases.cases().values()}
    assert kinds == {Shared, Momentum, PerView}
