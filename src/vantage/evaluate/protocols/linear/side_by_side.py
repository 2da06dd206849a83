"""Linear classifiers on a frozen backbone, for every learning rate and every depth at once: what all linear protocols
share.

n: images   b: images of a batch   d: width of the features   c: classes   r: learning rates   t: guesses an image

Every rate is trained side by side on the same features, twice: once on all training images, and once without a tenth
held out of each class. The second set of classifiers chooses the rate (and the depth), on the tenth it has not seen;
what is reported is a classifier of the first set, after the last epoch. So one pass over the images chooses and trains,
the classifier that is reported is trained exactly by the protocol, and no test label is looked at before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vantage.data.sources.source import Source, SourceSubset, cache_key
from vantage.data.splits import check_classes, held_out, with_labels
from vantage.encoders.depths import Depth
from vantage.encoding import Work, encode
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.crops import Epochs, counted, epochs_of
from vantage.evaluate.protocols.linear.heads import Heads
from vantage.evaluate.protocols.linear.plan import LinearPlan
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.feature_cache import features_in_parts
from vantage.storage.cache import hash_of
from vantage.storage.state import KeptState

__all__ = ["Classifiers", "Verdict", "judge"]


class Classifiers:
    """A classifier for each depth and each rate, trained on the same images; they share the features only."""

    def __init__(
        self, plan: LinearPlan, depths: tuple[Depth, ...], classes: int, rates: tuple[float, ...], device: torch.device
    ) -> None:
        """All at the start that the plan's seed gives."""
        self.depths = depths
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)
            starts = [plan.start(classes, depth.width) for depth in depths]
        self.heads = [Heads(weight.to(device), bias.to(device), rates, plan.descent) for weight, bias in starts]
        self.before = [plan.normalize(depth.channels).to(device) for depth in depths]

    def step(self, features: Float[Tensor, "b d"], label: Int[Tensor, "b"], factor: float) -> None:
        """One step of all of them. One number per channel cannot be normalized by its batch: then nothing happens."""
        for depth, heads, before, part in zip(self.depths, self.heads, self.before, self._parts(features), strict=True):
            if len(part) * depth.width // depth.channels > 1 or isinstance(before, nn.Identity):
                heads.step(_through(before.train(), part, depth), label, factor)

    def seen(self, features: Float[Tensor, "n d"]) -> Iterator[tuple[Heads, Float[Tensor, "n _"]]]:
        """The classifiers of each depth with what they see of images in testing."""
        for depth, heads, before, part in zip(self.depths, self.heads, self.before, self._parts(features), strict=True):
            yield heads, _through(before.eval(), part, depth)

    def tensors(self) -> dict[str, Tensor]:
        """All that steps change, to be read or written in place."""
        parts = [heads.tensors() | before.state_dict() for heads, before in zip(self.heads, self.before, strict=True)]
        return {f"{number}.{name}": value for number, part in enumerate(parts) for name, value in part.items()}

    def _parts(self, features: Float[Tensor, "b d"]) -> tuple[Float[Tensor, "b _"], ...]:
        return features.split([depth.width for depth in self.depths], 1)


@torch.no_grad()
def _through(before: nn.Module, part: Float[Tensor, "b d"], depth: Depth) -> Float[Tensor, "b d"]:
    return part if isinstance(before, nn.Identity) else before(part.unflatten(1, (depth.channels, -1))).flatten(1)


@dataclass(frozen=True)
class Verdict:
    """What came of it."""

    guess: tuple[Int[Tensor, "n t"], ...]
    """Of each depth, the classes guessed for each test image, best first, by the classifier of the rate chosen."""
    label: Int[Tensor, "n"]
    """Labels of the test images."""
    rate: tuple[float, ...]
    """Of each depth, the rate chosen: of the best accuracy on the images held out, of equal ones the lowest."""
    held_out: tuple[list[float], ...]
    """Of each depth, the accuracy of each rate on the images held out, in percent; none where nothing was chosen."""
    classes: int
    """How many classes the two sets have."""
    train_images: int
    """Labeled training images."""
    held_images: int
    """How many of them were held out of the classifiers that choose."""
    how: Mapping[str, Any]
    """What the plan fixes, and how crops were drawn."""

    @property
    def by(self) -> str:
        """What chose."""
        if not self.held_images:
            return "the protocol"
        return f"accuracy on {self.held_images} training images held out of other classifiers with the same rates"


def judge(
    plan: LinearPlan, depths: tuple[Depth, ...], encoder: FrozenEncoder, train: Source, test: Source, work: Work
) -> Verdict:
    """Train classifiers by a plan, and let them guess the test images.

    `encoder` gives the features of all `depths`, one after the other. What is drawn follows from seed, epoch and step
    alone, and the state after an epoch is kept in the cache now and then. Raises `UserError` where labels are missing
    or of one class only, `RuntimeError` where the backbone did not stay as it was.
    """
    device, before = work.resolved_device(), encoder.digest()
    encoder.backbone.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    train, label = with_labels(train)
    test, test_label = with_labels(test)
    check_classes(label, test_label, test.classes, work.progress)
    classes = max(len(train.classes), len(test.classes), int(label.max()) + 1)
    choosing = plan.learning_rates if len(plan.learning_rates) * len(depths) > 1 else ()
    held = held_out(label, plan.held_out, plan.seed) if choosing else torch.zeros(len(label), dtype=torch.bool)
    whole = Classifiers(plan, depths, classes, plan.learning_rates, device)
    partial = Classifiers(plan, depths, classes, choosing, device)
    facts = (plan.facts, encoder.digest(), cache_key(train), repr(depths), str(work.resident_bytes), device.type)
    key = hash_of([label.numpy().tobytes(), *map(str.encode, facts)])
    kept = KeptState(work.cache / "linear" / f"{key}.safetensors")
    images = epochs_of(train, plan.view, plan.batch_size, plan.seed, work)
    _train(plan, (whole, partial), (~held if choosing else None), images, label, encoder, kept, work)
    known = _accuracies(partial, encoder, SourceSubset(train, held.nonzero().squeeze(1)), label[held], work)
    best = [_best(plan.learning_rates, accuracies) for accuracies in known] or [0] * len(depths)
    for heads, place, depth in zip(whole.heads, best, depths, strict=True):
        if not heads.finite[place]:
            raise UserError(
                f"the linear classifier of {depth.name} diverged at the rate {plan.learning_rates[place]:g}: give"
                " lower ones (--learning-rates)"
            )
    guess = _guess(whole, best, encoder, test, work)
    if encoder.backbone.training or encoder.digest() != before:
        raise RuntimeError("the backbone changed while a linear classifier was trained on it: the result is void")
    kept.forget()
    rate, how = tuple(plan.learning_rates[place] for place in best), plan.fixed | {"crops": images.drawn}
    return Verdict(guess, test_label, rate, known, classes, len(label), int(held.sum()), how)


def _train(
    plan: LinearPlan,
    both: tuple[Classifiers, Classifiers],
    kept: Bool[Tensor, "n"] | None,
    images: Epochs,
    label: Int[Tensor, "n"],
    encoder: FrozenEncoder,
    state: KeptState,
    work: Work,
) -> None:
    """The first classifiers on all images, the second on those `kept` from being held out, if any are; from the epoch
    that an earlier training was stopped in."""
    live = {f"{number}.{name}": value for number, one in enumerate(both) for name, value in one.tensors().items()}
    before, device, done = state.read(), work.resolved_device(), 0
    if before and before.tensors.keys() == live.keys():
        done = before.facts["epochs"]
        for name, value in before.tensors.items():
            live[name].copy_(value)
    count = len(label)
    work.progress.start(f"linear classifiers, {encoder.name}, images", plan.epochs * count, done * count)
    for epoch in range(done, plan.epochs):
        factor, note = plan.factor(epoch), f"epoch {epoch + 1} of {plan.epochs}"
        for rows, views in counted(images(epoch), work.progress, epoch * count, note):
            features, wanted = encode(encoder.backbone, views), label[rows].to(device)
            both[0].step(features, wanted, factor)
            if kept is not None:
                some = kept[rows].to(device)
                both[1].step(features[some], wanted[some], factor)
        if state.due:
            state.write(live, {"epochs": epoch + 1})
    work.progress.stop()


def _accuracies(
    by: Classifiers, encoder: FrozenEncoder, source: Source, label: Int[Tensor, "n"], work: Work
) -> tuple[list[float], ...]:
    """Of each depth, the accuracy of each rate; nothing for no images."""
    if not len(label):
        return ()
    right = [torch.zeros(len(heads.bias), dtype=torch.int64) for heads in by.heads]
    start = 0
    for part in features_in_parts(encoder, source, work):
        wanted = label[start : start + len(part)].to(part.device)
        for count, (heads, features) in zip(right, by.seen(part), strict=True):
            count += heads.right(features, wanted).cpu()
        start += len(part)
    return tuple((100.0 * count.double() / len(label)).tolist() for count in right)


def _best(rates: tuple[float, ...], accuracies: list[float]) -> int:
    return min(range(len(rates)), key=lambda place: (-accuracies[place], rates[place]))


def _guess(
    by: Classifiers, best: list[int], encoder: FrozenEncoder, test: Source, work: Work
) -> tuple[Int[Tensor, "n t"], ...]:
    made: list[list[Tensor]] = [[] for _ in best]
    for part in features_in_parts(encoder, test, work):
        for guesses, place, (heads, features) in zip(made, best, by.seen(part), strict=True):
            guesses.append(heads.predict(place, features).cpu())
    return tuple(torch.cat(guesses) for guesses in made)
