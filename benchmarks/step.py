"""A whole MoCo v2 training step compared with lightly's: same network, batch, images and precision, in one run.

    python benchmarks/step.py            # ResNet-18 with the small stem, 32 px, batch 256, queue 65,536

lightly's step follows its own MoCo example: momentum update, two forward passes, its NT-Xent loss with a
memory bank, backward, SGD. Ours is `Learner` as the training loop calls it, without SplitBatchNorm(8), so that
the networks are equal. Views are made beforehand.
"""

import argparse
import copy
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from timing import fresh, interleave, measured_peak, speedup, write_results
from torch import Tensor

import vantage
from vantage.encoders import BatchNorm, EncoderNetwork, Momentum
from vantage.machine.devices import has_bf16

QUEUE = 65_536


def recipe() -> vantage.Run:
    """MoCo v2 for 32 px with plain BatchNorm and the long queue."""
    run = vantage.moco_v2(size=32)
    role = run.encoders
    assert isinstance(role, Momentum)
    encoder = replace(role.encoder, normalization=BatchNorm())
    branch = replace(run.branches[0], memory=vantage.Queue(QUEUE))
    return replace(run, encoders=replace(role, encoder=encoder), branches=(branch,))


def ours(views: list[Tensor], device: str, precision: str, channels_last: bool) -> Callable[[], None]:
    """The learner's step as `vantage.train` takes it."""
    run = recipe()
    torch.manual_seed(0)
    learner = vantage.Learner(run.encoders, run.branches, images=50_000, seed=0).to(device)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    learner.networks.to(memory_format=layout)  # pyright: ignore
    views = [view.contiguous(memory_format=layout) for view in views]
    return training_step(run, learner, views, precision)


def training_step(
    run: vantage.Run, learner: vantage.Learner, views: list[Tensor], precision: str = "fp32"
) -> Callable[[], None]:
    """One step of a learner on these views: forward, backward, optimizer, memory and momentum encoder."""
    optimizer = run.optimizer.build(learner, lr=0.03)
    device = views[0].device
    image, count = torch.arange(len(views[0]), device=device), iter(range(1 << 40))

    def step() -> None:
        number = next(count)
        learner.before_step(number)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            result = learner(views, image, number)
        result.loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        learner.after_step([result.fresh], number)

    return step


def lightly(views: list[Tensor], device: str) -> Callable[[], None]:
    """lightly's parts, put together as in its MoCo example."""
    from lightly.loss import NTXentLoss
    from lightly.models.utils import deactivate_requires_grad, update_momentum

    run = recipe()
    assert isinstance(run.encoders, Momentum)
    torch.manual_seed(0)
    network = run.encoders.encoder.build().to(device)

    def vectors(encoder: EncoderNetwork, images: Tensor) -> Tensor:
        return encoder.head(encoder.features(images))

    slow = copy.deepcopy(network)
    deactivate_requires_grad(slow)
    loss = NTXentLoss(temperature=0.1, memory_bank_size=(QUEUE, 128)).to(device)
    optimizer = torch.optim.SGD(network.parameters(), 0.03, momentum=0.9, weight_decay=5e-4)

    def step() -> None:
        update_momentum(network, slow, m=0.99)
        query = vectors(network, views[0])
        with torch.no_grad():
            key = vectors(slow, views[1])
        loss(query, key).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def cases(batch: int, device: str) -> dict[str, Callable[[], None]]:
    """Every case that can run here."""
    generator = torch.Generator().manual_seed(0)
    views = [torch.randn(batch, 3, 32, 32, generator=generator).to(device) for _ in range(2)]
    cases: dict[str, Callable[[], None]] = {}
    try:
        cases["lightly, float32"] = lightly(views, device)
    except ImportError:
        print("lightly is not installed: left out")
    cases["ours, float32, its layout"] = ours(views, device, "fp32", channels_last=False)
    cases["ours, float32, channels last"] = ours(views, device, "fp32", channels_last=True)
    if has_bf16(device == "cuda"):
        cases["ours, bf16, channels last"] = ours(views, device, "bf16", channels_last=True)
    return cases


def main() -> None:
    """Time all cases in turn and write results/step.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--peak", help="print the peak memory of one case and stop")
    options = parser.parse_args()
    steps = cases(options.batch, options.device)
    if options.peak:
        print(measured_peak(steps[options.peak]))
        return
    base = next(iter(steps))
    seconds = interleave(steps, options.rounds)
    rows: list[dict[str, Any]] = []
    for name, times in seconds.items():
        peak = fresh(__file__, "--batch", str(options.batch), "--device", options.device, "--peak", name)
        middle = statistics.median(times)
        row = {"case": name, "ms": round(1e3 * middle), "images/s": round(options.batch / middle, 1)}
        row |= {f"times faster than {base}": round(speedup(seconds, name, base), 2), "peak MiB": round(peak)}
        rows.append(row)
        print(row, flush=True)
    write_results("step" if options.device == "cpu" else "step-gpu", rows)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
