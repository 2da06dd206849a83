"""BatchNorm of groups at once: the formula on a CPU, and the kernels, interpreted and on a GPU."""

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from vantage.encoders.normalization import fused
from vantage.encoders.normalization.grouped import SplitBatchNorm2d, fused_batch_norm, grouped_batch_norm

INTERPRETED = """
import torch
from vantage.encoders.normalization import fused, kernels

def same(one, other, **within):
    torch.testing.assert_close(one, other, **within)

torch.manual_seed(0)
kernels._PROGRAMS = 8  # so that a stretch is longer than what a program reads at once
for groups, rows, channels, kind in {cases}:
    images, slopes = (torch.randn(groups * rows, channels).to(kind) for _ in range(2))
    images = images + 50  # far from zero, where a plain sum of squares would lose the variance
    weight, bias, *running = torch.rand(4, channels) + 0.5
    other = [value.clone() for value in running]
    sums = kernels.sums(images, None, None, groups)
    found = kernels.finish(images, sums, tuple(running), 0.1, 1e-5)
    result = torch.empty_like(images)
    kernels.write(result, images, found, (weight, bias))
    expected, *statistics = fused.normalize(images, weight, bias, *other, groups, 0.1, 1e-5)
    within = dict(rtol=2e-5, atol=2e-5)
    same(list(found), statistics, **within)
    same(running, other, **within)
    rounding = within if kind == torch.float32 else dict(rtol=1e-2, atol=1e-2)
    same(result, expected, **rounding)
    total = kernels.sums(images, slopes, found[0], groups).sum(0)
    kernels.write(result, images, found, (weight, None), slopes, total)
    expected, *affine = fused.slope(slopes, images, weight, *statistics)
    same(result, expected, **rounding)
    same([(total[1] * found[1]).sum(0), total[0].sum(0)], affine, rtol=1e-4, atol=1e-3)
print("the same")
"""
CASES = "((4, 200, 5, torch.float32), (3, 20, 70, torch.bfloat16), (3, 2, 130, torch.float32))"
COMPILED = """
import torch
from torch import nn
from vantage.encoders.normalization.grouped import fused_batch_norm, grouped_batch_norm

norm, images, weight = nn.BatchNorm2d(3), *torch.randn(2, 8, 3, 4, 4)
compiled = torch.compile(lambda x: torch.relu_(fused_batch_norm(norm, x, 4)), fullgraph=True, backend="aot_eager")
found = []
for compute in (compiled, lambda x: torch.relu(grouped_batch_norm(norm, x, 4))):
    own = images.clone().requires_grad_()
    result = compute(own)
    (result * weight).sum().backward()
    found.append([result.detach(), own.grad])
torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
print("the same")
"""


def run_alone(program: str, **environment: str) -> None:
    """Run it without the checks of annotations, which neither Triton nor a compiler can read."""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "the same"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton comes with torch for Linux only")
def test_interpreted_kernels_compute_the_formula() -> None:
    words = [sys.executable, "-c", INTERPRETED.replace("{cases}", CASES)]
    done = subprocess.run(
        words, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "the same"


def test_the_operators_describe_their_results() -> None:
    images = torch.randn(8, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    weight, bias, mean, variance = torch.rand(4, 3) + 0.5
    arguments = (images, weight, bias, mean.clone(), variance.clone(), 4, 0.1, 1e-5)
    torch.library.opcheck(torch.ops.vantage.normalize_groups.default, arguments)
    _, *statistics = fused.normalize(images, None, None, None, None, 4, 0.0, 1e-5)
    torch.library.opcheck(torch.ops.vantage.slope_of_groups.default, (images, images, weight, *statistics))


@pytest.mark.slow
def test_groups_at_once_compile_as_a_whole() -> None:
    run_alone(COMPILED)


@pytest.fixture
def fresh() -> Iterator[None]:
    """What this machine can do is asked anew, before and after."""
    fused.can_fuse.cache_clear()
    yield
    fused.can_fuse.cache_clear()


@pytest.mark.parametrize(("path", "compiler"), [("", None), (os.environ["PATH"], "no-such-compiler -m64")])
@pytest.mark.usefixtures("fresh")
def test_without_a_compiler_groups_are_computed_one_by_one(
    path: str, compiler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path)
    monkeypatch.delenv("CC", raising=False) if compiler is None else monkeypatch.setenv("CC", compiler)
    assert not fused.can_fuse()


@pytest.mark.usefixtures("fresh")
def test_without_pythons_headers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda *names: str(tmp_path))
    assert not fused.can_fuse()
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(fused, "find_spec", lambda name: name)
    fused.can_fuse.cache_clear()
    assert fused.can_fuse()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("channels", "side"), [(3, 5), (64, 32), (512, 4)])
def test_kernels_on_a_gpu_are_groups_one_by_one(kind: torch.dtype, channels: int, side: int) -> None:
    norm = SplitBatchNorm2d(channels).cuda()
    images = (3 * torch.randn(64, channels, side, side, device="cuda") + 1).to(kind)
    images = images.contiguous(memory_format=torch.channels_last)
    weight = torch.randn_like(images)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
    first, second, again = (results(copy.deepcopy(norm), images, weight, fuse) for fuse in (False, True, True))
    rounding = 3e-2 if kind == torch.bfloat16 else 1e-4
    for one, other, third in zip(first, second, again, strict=True):
        scale = one.float().abs().max().item()
        torch.testing.assert_close(one.float(), other.float(), rtol=0, atol=rounding * scale)
        assert torch.equal(other, third)


def results(norm: SplitBatchNorm2d, images: Tensor, weight: Tensor, fuse: bool) -> list[Tensor]:
    """Normalized images, all gradients, running statistics."""
    own = images.clone().requires_grad_()
    result = (fused_batch_norm if fuse else grouped_batch_norm)(norm, own, 8)
    (result * weight).sum().backward()
    assert own.grad is not None
    gradients = [parameter.grad for parameter in norm.parameters() if parameter.grad is not None]
    return [result.detach(), own.grad, *gradients, *(buffer.float() for buffer in norm.buffers())]


@pytest.mark.gpu
def test_a_gpu_takes_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    norm, images = SplitBatchNorm2d(8).cuda(), torch.randn(16, 8, 4, 4, device="cuda")
    norm.groups = 4
    called = list[int]()

    def fuse(norm: nn.Module, images: Tensor, groups: int) -> Tensor:
        called.append(groups)
        return images

    monkeypatch.setattr("vantage.encoders.normalization.grouped.fused_batch_norm", fuse)
    norm(images)
    assert called == [4]
