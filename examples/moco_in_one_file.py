"""MoCo v2 in one file of plain PyTorch, short enough to read in one sitting. It uses no part of the library.

    python examples/moco_in_one_file.py                      # random images, to see that it runs
    python examples/moco_in_one_file.py --npz images.npz     # a uint8 array "images" of (n, h, w, 3), 32 to 64 pixels

He et al., "Momentum Contrast", arXiv 1911.05722, with the changes of Chen et al., arXiv 2003.04297, scaled to small
images. A test checks that it has the same losses as the recipe `vantage.moco_v2`, given the same weights and views.
"""

import argparse
import copy
import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torchvision.models import resnet18
from torchvision.transforms import v2


class SplitBatchNorm(nn.BatchNorm2d):
    """BatchNorm over parts of the batch, as on several devices, so that its statistics do not reveal a query's key."""

    groups = 8

    def forward(self, input: Tensor) -> Tensor:
        """Normalize each part separately; the keys must have been shuffled."""
        if not self.training:
            return super().forward(input)
        return torch.cat([super(SplitBatchNorm, self).forward(part) for part in input.chunk(self.groups)])


def encoder(width: int = 128) -> nn.Module:
    """ResNet-18 with a stem for small images, and a head of two layers instead of its classifier."""
    network = resnet18(norm_layer=SplitBatchNorm)
    network.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity()
    network.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, width))
    return network


class MoCo(nn.Module):
    """A query network, a momentum encoder for the keys, and a queue of the newest keys."""

    queue: Tensor

    def __init__(self, network: nn.Module, keys: int, width: int, momentum: float, temperature: float) -> None:
        super().__init__()
        self.query, self.key = network, copy.deepcopy(network).requires_grad_(False)
        self.register_buffer("queue", normalize(torch.randn(keys, width), dim=1))
        self.momentum, self.temperature, self.oldest = momentum, temperature, 0

    def forward(self, first: Tensor, second: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of two views of a batch, and the keys to remember after the step. Keys are encoded in `order`."""
        q = normalize(self.query(first), dim=1)
        with torch.no_grad():  # no gradient to keys
            for slow, fast in zip(self.key.parameters(), self.query.parameters(), strict=True):
                slow.mul_(self.momentum).add_(fast, alpha=1 - self.momentum)
            k = normalize(self.key(second[order]), dim=1)[order.argsort()]
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.T
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        return cross_entropy(logits, torch.zeros(len(q), dtype=torch.int64, device=q.device)), k

    @torch.no_grad()
    def remember(self, keys: Tensor) -> None:
        """Replace the oldest keys. Call this after the step, so that no key is a negative of its own query."""
        rows = (self.oldest + torch.arange(len(keys), device=keys.device)) % len(self.queue)
        self.queue[rows] = keys
        self.oldest = (self.oldest + len(keys)) % len(self.queue)


def views(images: Tensor, size: int) -> Tensor:
    """One view of every image, each drawn separately: crop, jitter, gray, blur, flip."""
    blur = v2.GaussianBlur(kernel_size=5, sigma=(0.1, 2.0))
    make = v2.Compose(
        [
            v2.RandomResizedCrop(size, scale=(0.2, 1.0), antialias=True),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([blur], p=0.5),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    return torch.stack([make(image) for image in images])


def learning_rate(epoch: int, epochs: int, base: float) -> float:
    """Half a cosine from `base` down to 0, by epoch."""
    return base * 0.5 * (1 + math.cos(math.pi * epoch / epochs))


def train(images: Tensor, epochs: int, batch_size: int, device: str) -> nn.Module:
    """Train on uint8 images (n, 3, h, w); returns the query network."""
    size, steps = images.shape[-1], len(images) // batch_size
    if steps == 0:
        raise SystemExit(f"{len(images)} images do not fill a batch of {batch_size}: lower --batch-size")
    keys = max(batch_size, len(images) // 10)
    moco = MoCo(encoder(), keys, width=128, momentum=0.99, temperature=0.1).to(device)
    optimizer = torch.optim.SGD(moco.query.parameters(), lr=0.0, momentum=0.9, weight_decay=5e-4)
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = learning_rate(epoch, epochs, base=0.03 * batch_size / 256)
        total = 0.0
        for rows in torch.randperm(len(images))[: steps * batch_size].view(steps, batch_size):
            first, second = views(images[rows], size).to(device), views(images[rows], size).to(device)
            loss, fresh = moco(first, second, torch.randperm(batch_size, device=device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            moco.remember(fresh)
            total += float(loss.detach())
        print(f"epoch {epoch + 1}: loss {total / steps:.4f}", flush=True)
    return moco.query


def main() -> None:
    """Read the arguments, train, and save the weights of the query network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npz", help='file with a uint8 array "images" of (n, h, w, 3); if omitted, random images')
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="a multiple of 8, and at least 16")
    parser.add_argument("--out", help="where to write the weights")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.manual_seed(0)
    noise = np.random.default_rng(0).integers(0, 256, (64, 16, 16, 3))
    pixels = np.load(options.npz)["images"] if options.npz else noise
    images = torch.from_numpy(pixels.astype(np.uint8)).permute(0, 3, 1, 2).contiguous()
    network = train(images, options.epochs, options.batch_size, options.device)
    if options.out:
        torch.save(network.state_dict(), options.out)


if __name__ == "__main__":
    main()
