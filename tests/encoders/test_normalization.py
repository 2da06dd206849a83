"""BatchNorm in groups equals one BatchNorm a group, forwards, backwards and in what it remembers."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vantage import processes
from vantage.encoders.backbones.resnet import ResNet, Timm
from vantage.encoders.heads import NormalizedMLP
from vantage.encoders.normalization.choices import BatchNorm, Normalization, SplitBatchNorm
from vantage.encoders.normalization.grouped import (
    GroupedStatistics,
    SplitBatchNorm2d,
    fused_batch_norm,
    grouped_batch_norm,
    share_of_groups,
)
from vantage.errors import UserError


def with_statistics(norm: nn.Module) -> nn.Module:
    """In float64, with parameters and running statistics that are not the initial ones."""
    norm = norm.double()
    with torch.no_grad():
        for value in [*norm.parameters(), *(buffer for buffer in norm.buffers() if buffer.is_floating_point())]:
            value.copy_(torch.rand_like(value) + 0.5)
    return norm


def one_norm_a_group(norm: nn.Module, images: Tensor, weight: Tensor, groups: int) -> tuple[Tensor, ...]:
    """Output, gradients and running statistics of g separate copies, each with its share of the batch."""
    images = images.detach().clone().requires_grad_()
    copies = [copy.deepcopy(norm) for _ in range(groups)]
    result = torch.cat([each(part) for each, part in zip(copies, images.chunk(groups), strict=True)])
    (result * weight).sum().backward()
    assert images.grad is not None
    results = [result.detach(), images.grad]
    for name, _ in norm.named_parameters():
        results.append(torch.stack([each.get_parameter(name).grad for each in copies]).sum(0))  # type: ignore[arg-type]
    for name, _ in norm.named_buffers():
        results.append(torch.stack([each.get_buffer(name).double() for each in copies]).mean(0))
    return tuple(results)


def in_groups(norm: nn.Module, images: Tensor, weight: Tensor, groups: int) -> tuple[Tensor, ...]:
    norm = SplitBatchNorm(groups).convert(copy.deepcopy(norm))
    images = images.detach().clone().requires_grad_()
    result = norm(images)
    (result * weight).sum().backward()
    assert images.grad is not None
    gradients = [parameter.grad for parameter in norm.parameters() if parameter.grad is not None]
    return (result.detach(), images.grad, *gradients, *(buffer.double() for buffer in norm.buffers()))


SHAPES: list[tuple[Callable[..., nn.Module], tuple[int, ...]]] = [
    (nn.BatchNorm1d, ()),
    (nn.BatchNorm1d, (5,)),
    (nn.BatchNorm2d, (3, 4)),
    (nn.BatchNorm3d, (2, 3, 2)),
]


@pytest.mark.parametrize(("kind", "rest"), SHAPES, ids=lambda value: getattr(value, "__name__", str(value)))
@given(
    groups=st.integers(1, 6), share=st.integers(2, 5), channels=st.integers(1, 4), momentum=st.sampled_from([0.1, None])
)
def test_groups_of_the_joined_batch_are_separate_norms(
    kind: Callable[..., nn.Module],
    rest: tuple[int, ...],
    groups: int,
    share: int,
    channels: int,
    momentum: float | None,
) -> None:
    norm = with_statistics(kind(channels, momentum=momentum))
    images = torch.randn(groups * share, channels, *rest, dtype=torch.float64)
    weight = torch.randn_like(images)
    expected = one_norm_a_group(norm, images, weight, groups)
    result = in_groups(norm, images, weight, groups)
    assert len(result) == len(expected) == 7
    for one, other in zip(result, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("kind", "rest"), SHAPES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("settings", [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_groups_at_once_are_groups_one_by_one(
    kind: Callable[..., nn.Module], rest: tuple[int, ...], settings: dict[str, Any], layout: torch.memory_format
) -> None:
    first = with_statistics(kind(3, **settings))
    images = torch.randn(8, 3, *rest, dtype=torch.float64)
    if layout == torch.channels_last and len(rest) == 2:
        images = images.contiguous(memory_format=layout)
    weight, results = torch.randn_like(images), []
    for normalize in (grouped_batch_norm, fused_batch_norm):
        norm, own = copy.deepcopy(first), images.clone().requires_grad_()
        assert isinstance(norm, _BatchNorm)
        result = normalize(norm, own, 4)
        assert not result._is_view()  # an activation in place would copy it
        (result * weight).sum().backward()
        gradients = [parameter.grad for parameter in norm.parameters()]
        results.append((result.detach(), own.grad, *gradients, *norm.buffers()))
    torch.testing.assert_close(results[1], results[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("settings", [{"affine": False}, {"track_running_stats": False}])
def test_groups_without_parameters_or_memory(settings: dict[str, bool]) -> None:
    norm = nn.BatchNorm2d(3, **settings).double()
    images = torch.randn(8, 3, 2, 2, dtype=torch.float64)
    split = SplitBatchNorm(4).convert(copy.deepcopy(norm))
    expected = torch.cat([copy.deepcopy(norm)(part) for part in images.chunk(4)])
    torch.testing.assert_close(split(images), expected, rtol=1e-12, atol=1e-12)
    norm.load_state_dict(split.state_dict())
    assert torch.equal(split.eval()(images), norm.eval()(images))


def test_a_whole_resnet_in_groups_is_one_resnet_a_group() -> None:
    plain = ResNet(18, small=True).build().double()
    split = SplitBatchNorm(2).convert(copy.deepcopy(plain))
    images = torch.randn(6, 3, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(split(images), torch.cat([plain(part) for part in images.chunk(2)]))
    assert not torch.allclose(split(images), copy.deepcopy(plain)(images))
    assert sum(isinstance(layer, GroupedStatistics) for layer in split.modules()) == 20


def test_images_of_another_group_do_not_matter() -> None:
    split = SplitBatchNorm(2).convert(nn.BatchNorm2d(3))
    images = torch.randn(8, 3, 4, 4)
    other = torch.cat([images[:4], torch.randn(4, 3, 4, 4)])
    assert torch.equal(split(images)[:4], split(other)[:4])
    whole = nn.BatchNorm2d(3)
    assert not torch.equal(whole(images)[:4], whole(other)[:4])


def test_evaluation_is_ordinary_batch_norm_and_takes_any_batch() -> None:
    plain = with_statistics(nn.BatchNorm2d(3)).eval()
    split = SplitBatchNorm(8).convert(copy.deepcopy(plain))
    images = torch.randn(5, 3, 4, 4, dtype=torch.float64)
    before = copy.deepcopy(split.state_dict())
    assert torch.equal(split(images), plain(images))
    assert all(torch.equal(value, before[name]) for name, value in split.state_dict().items())


@pytest.mark.parametrize("choice", [BatchNorm(), SplitBatchNorm(1), SplitBatchNorm(4)])
def test_names_and_values_of_the_state_stay(choice: Normalization) -> None:
    for plain in (ResNet(18).build(), NormalizedMLP(hidden=8, width=4).build(8)):
        conversion = choice.convert(copy.deepcopy(plain))
        assert list(conversion.state_dict()) == list(plain.state_dict())
        plain.load_state_dict(conversion.state_dict(), strict=True)
        assert all(torch.equal(value, plain.state_dict()[name]) for name, value in conversion.state_dict().items())


def test_the_parameters_stay_the_same_objects() -> None:
    network = ResNet(18).build()
    before = {id(parameter) for parameter in network.parameters()}
    assert {id(parameter) for parameter in SplitBatchNorm(2).convert(network).parameters()} == before


def test_a_copy_stays_split() -> None:
    split = copy.deepcopy(SplitBatchNorm(4).convert(nn.BatchNorm2d(3)))
    assert isinstance(split, SplitBatchNorm2d) and split.groups == 4


@given(batch=st.integers(1, 30), groups=st.integers(2, 9))
def test_a_batch_that_does_not_divide_is_refused(batch: int, groups: int) -> None:
    split = SplitBatchNorm(groups).convert(nn.BatchNorm2d(2))
    images = torch.randn(batch, 2, 2, 2)
    if batch % groups == 0:
        assert split(images).shape == images.shape
        return
    with pytest.raises(UserError, match=f"{batch} images into {groups} equal groups"):
        split(images)


def test_a_shape_that_is_not_of_images_is_refused() -> None:
    with pytest.raises(ValueError, match="4D"):
        SplitBatchNorm(2).convert(nn.BatchNorm2d(2))(torch.randn(4, 2))


def test_batch_norm_of_the_joint_batch_is_the_network_as_it_is_on_one_process() -> None:
    plain = ResNet(18).build()
    assert BatchNorm().convert(plain) is plain
    assert not any(isinstance(layer, GroupedStatistics) for layer in plain.modules())


@given(groups=st.integers(1, 16), parts=st.integers(1, 8), count=st.integers(1, 16), images=st.integers(1, 4))
def test_every_image_of_the_joint_batch_is_in_its_group_however_it_is_computed(
    groups: int, parts: int, count: int, images: int
) -> None:
    """Image by image: the group that its process and part put it in holds the images that the joint batch's does."""
    size = groups * parts * count * images
    try:
        groups_here, extent = share_of_groups(groups, parts, count)
    except UserError as refusal:
        assert groups % parts or ((groups // parts) % count and count % (groups // parts))
        assert "SplitBatchNorm(" in str(refusal)
        return
    assert 1 in (groups_here, extent)
    joint = torch.arange(size).chunk(groups)
    images_of_group: dict[tuple[int, int, int], list[int]] = {}
    for part, rows in enumerate(torch.arange(size).chunk(parts)):
        for rank, own in enumerate(rows.chunk(count)):
            for number, group in enumerate(own.chunk(groups_here)):
                images_of_group.setdefault((part, rank // extent, number), []).extend(group.tolist())
    assert sorted(map(sorted, images_of_group.values())) == [group.tolist() for group in joint]


@pytest.mark.parametrize("choice", [SplitBatchNorm(2), SplitBatchNorm(1)])
def test_activations_inside_timms_batch_norm_survive(choice: Normalization) -> None:
    pytest.importorskip("timm")
    plain = Timm("efficientnet_lite0").build().double()
    conversion = choice.convert(copy.deepcopy(plain))
    images = torch.randn(4, 3, 32, 32, dtype=torch.float64)
    torch.testing.assert_close(conversion.eval()(images), copy.deepcopy(plain).eval()(images))
    assert list(conversion.state_dict()) == list(plain.state_dict())


def test_timms_batch_norm_in_groups_is_one_a_group() -> None:
    norm_act = pytest.importorskip("timm.layers.norm_act")
    plain = norm_act.BatchNormAct2d(3).double()
    split = SplitBatchNorm(3).convert(copy.deepcopy(plain))
    images = torch.randn(9, 3, 2, 2, dtype=torch.float64)
    result = split(images)
    torch.testing.assert_close(result, torch.cat([plain(part) for part in images.chunk(3)]))
    assert (result >= 0).all() and (result == 0).any()


class Unknown(nn.BatchNorm2d):
    """A BatchNorm whose forward pass nobody here knows."""


@pytest.mark.parametrize("choice", [SplitBatchNorm(2), BatchNorm()])
def test_unknown_kinds_are_refused_and_left_as_they_were(
    choice: Normalization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "count", lambda: 2)
    network = nn.Sequential(nn.BatchNorm2d(3), Unknown(3))
    with pytest.raises(UserError, match="Unknown"):
        choice.convert(network)
    assert type(network[0]) is nn.BatchNorm2d


def test_choices_are_values() -> None:
    for choice in (BatchNorm(), SplitBatchNorm(groups=4)):
        assert isinstance(choice, Normalization)
        assert eval(repr(choice)) == choice
    with pytest.raises(UserError, match="groups is 0"):
        SplitBatchNorm(0)


@pytest.mark.parametrize(("batch", "groups"), [(512, 8), (256, 8), (128, 8), (64, 4), (32, 2), (16, 1), (8, 1)])
def test_groups_hold_sixteen_images_where_the_batch_was_fitted(batch: int, groups: int):
    choice = SplitBatchNorm(8).fit_to(images=1000, batch_size=batch)
    assert choice.groups == groups and batch % choice.groups == 0
