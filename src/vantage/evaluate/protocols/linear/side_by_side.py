"""Linear classifiers on a frozen backbone, for every learning rate and every depth at once: the core that all linear
protocols share.

n: images   b: images of a batch   d: width of the features   c: classes   r: learning rates   t: guesses per image

All learning rates are trained side by side on the same features, in two sets of classifiers: one on all training
images, the other without a tenth of each class, which is held out. The second set chooses the learning rate (and the
depth) by its accuracy on the held-out tenth; the reported classifier is one of the first set, after the last epoch. So
the same passes over the images choose and train, the reported classifier is trained exactly by the protocol, and no
test label is used before the end.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vantage import draws, processes
from vantage.data.sources.source import Source, cache_key
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import LabeledSplit, hold_out_mask
from vantage.encoders.backbones.depths import Depth
from vantage.encoding import Work, encode
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.crops import Epochs, epochs_of, report_progress
from vantage.evaluate.protocols.linear.heads import Heads
from vantage.evaluate.protocols.linear.plan import LinearPlan
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.feature_cache import features_in_parts
from vantage.processes.sharing import gather_rows, same_on_all
from vantage.progress import task
from vantage.storage.cache import hash_of
from vantage.storage.state import StateFile

__all__ = ["Classifiers", "LinearGuesses", "train_and_guess"]


class Classifiers:
    """A classifier for each depth and each learning rate, trained on the same images; they share only the features."""

    def __init__(
        self,
        plan: LinearPlan,
        depths: tuple[Depth, ...],
        classes: int,
        learning_rates: tuple[float, ...],
        device: torch.device,
    ) -> None:
        """All start at initial weights drawn with the plan's seed."""
        self.depths = depths
        with draws.torch_seed(plan.seed):
            starts = [plan.start(classes, depth.width) for depth in depths]
        self.heads = [
            Heads(weight.to(device), bias.to(device), learning_rates, plan.descent) for weight, bias in starts
        ]
        self.normalizers = [plan.normalize(depth.channels).to(device) for depth in depths]

    def step(self, features: Float[Tensor, "b d"], label: Int[Tensor, "b"], factor: float) -> None:
        """One step of every classifier; a no-op if the batch has only one number per channel, which BatchNorm cannot
        normalize."""
        for depth, heads, normalize, part in self._each(features):
            if len(part) * depth.width // depth.channels > 1 or isinstance(normalize, nn.Identity):
                heads.step(_through(normalize.train(), part, depth), label, factor)

    def inputs(self, features: Float[Tensor, "n d"]) -> Iterator[tuple[Heads, Float[Tensor, "n _"]]]:
        """The classifiers of each depth with their normalized features, as in testing."""
        for depth, heads, normalize, part in self._each(features):
            yield heads, _through(normalize.eval(), part, depth)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors that steps change, to be read or written in place."""
        pairs = zip(self.heads, self.normalizers, strict=True)
        parts = [heads.tensors() | normalize.state_dict() for heads, normalize in pairs]
        return {f"{number}.{name}": value for number, part in enumerate(parts) for name, value in part.items()}

    def _each(self, features: Float[Tensor, "b d"]) -> Iterator[tuple[Depth, Heads, nn.Module, Float[Tensor, "b _"]]]:
        parts = features.split([depth.width for depth in self.depths], 1)
        return zip(self.depths, self.heads, self.normalizers, parts, strict=True)


@torch.no_grad()
def _through(normalize: nn.Module, part: Float[Tensor, "b d"], depth: Depth) -> Float[Tensor, "b d"]:
    return part if isinstance(normalize, nn.Identity) else normalize(part.unflatten(1, (depth.channels, -1))).flatten(1)


@dataclass(frozen=True)
class LinearGuesses:
    """What the classifiers guess, and how they were chosen."""

    guess: tuple[Int[Tensor, "n t"], ...]
    """For each depth, the classes guessed for each test image, best first, by the chosen classifier."""
    label: Int[Tensor, "n"]
    """Labels of the test images."""
    learning_rate: tuple[float, ...]
    """For each depth, the chosen learning rate: the best on held-out images (the lowest, if several tie)."""
    held_out: tuple[list[float], ...]
    """For each depth, the accuracy of each learning rate on held-out images, in percent; empty without a choice."""
    classes: int
    """Number of classes that training images show."""
    train_images: int
    """Number of labeled training images."""
    held_out_images: int
    """How many of them the second set of classifiers was not trained on."""
    how: Mapping[str, Any]
    """Everything that the plan fixes, and how crops were drawn."""

    @property
    def by(self) -> str:
        """The criterion of the choice."""
        if not self.held_out_images:
            return "the protocol"
        return f"accuracy, on {self.held_out_images} training images held out, of other classifiers with the same rates"


def train_and_guess(
    plan: LinearPlan, depths: tuple[Depth, ...], encoder: FrozenEncoder, train: Source, test: Source, work: Work
) -> LinearGuesses:
    """Train classifiers by a plan, and guess the classes of the test images.

    `encoder` gives the features of all `depths`, one after another. All draws follow from seed, epoch and step alone,
    and the state after an epoch is saved in the cache from time to time. Raises `UserError` if labels are missing or
    all of one class, `RuntimeError` if the backbone changed.
    """
    device, digest = work.resolved_device(), encoder.digest()
    encoder.backbone.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    sets = LabeledSplit.of(train, test, work.progress)
    (train, label, test, test_label), classes = sets, sets.classes
    candidates = plan.learning_rates if len(plan.learning_rates) * len(depths) > 1 else ()
    instead = "a single rate (--learning-rates 10)" if len(depths) == 1 else "a protocol with a single depth and rate"
    nothing = torch.zeros(len(label), dtype=torch.bool)
    mask = hold_out_mask(label, plan.held_out, plan.seed, instead) if candidates else nothing
    whole = Classifiers(plan, depths, classes, plan.learning_rates, device)
    partial = Classifiers(plan, depths, classes, candidates, device)
    facts = (plan.facts, digest, cache_key(train), repr(depths), str(work.resident_bytes), device.type)
    key = hash_of([label.numpy().tobytes(), *facts])
    state = StateFile(work.cache / "linear" / f"{key}.safetensors")
    images = epochs_of(train, plan.view, plan.batch_size, plan.seed, work)
    _train(plan, (whole, partial), (~mask if candidates else None), images, label, encoder, state, work)
    accuracies = _accuracies(partial, encoder, SourceSubset(train, mask.nonzero().squeeze(1)), label[mask], work)
    best = [_best(plan.learning_rates, of_depth) for of_depth in accuracies] or [0] * len(depths)
    _check_finite(plan, whole, best)
    guess = _guess(whole, best, encoder, test, work)
    if encoder.backbone.training or encoder.digest() != digest:
        raise RuntimeError("the backbone changed while a linear classifier was trained on it: the result is void")
    state.forget()
    chosen, how = tuple(plan.learning_rates[index] for index in best), plan.constants | {"crops": images.crop_method}
    return LinearGuesses(guess, test_label, chosen, accuracies, sets.trained_classes, len(label), int(mask.sum()), how)


def _check_finite(plan: LinearPlan, classifiers: Classifiers, best: list[int]) -> None:
    for heads, index, depth in zip(classifiers.heads, best, classifiers.depths, strict=True):
        if not heads.finite[index]:
            raise UserError(
                f"the linear classifier of {depth.name} diverged at learning rate {plan.learning_rates[index]:g}: give"
                " lower ones (--learning-rates)"
            )


def _train(
    plan: LinearPlan,
    both: tuple[Classifiers, Classifiers],
    subset: Bool[Tensor, "n"] | None,
    images: Epochs,
    label: Int[Tensor, "n"],
    encoder: FrozenEncoder,
    state: StateFile,
    work: Work,
) -> None:
    """Train the first classifiers on all images, and the second, if any, on those that `subset` marks; an interrupted
    run resumes at the epoch in which it was stopped. Processes share the images of a batch and take the same steps,
    equal to those of one process to 1e-6, since a network may round differently in smaller batches."""
    tensors = {f"{number}.{name}": value for number, one in enumerate(both) for name, value in one.tensors().items()}
    start, device = _restore(state, tensors), work.resolved_device()
    count = len(label)
    with task(work.progress, f"linear classifiers, {encoder.name}, images", plan.epochs * count, start * count):
        for epoch in range(start, plan.epochs):
            factor, note = plan.factor(epoch), f"epoch {epoch + 1} of {plan.epochs}"
            for rows, views in report_progress(images(epoch), work.progress, epoch * count, note):
                features, target = gather_rows(encode(encoder.backbone, views), len(rows)), label[rows].to(device)
                both[0].step(features, target, factor)
                if subset is not None:
                    in_subset = subset[rows].to(device)
                    both[1].step(features[in_subset], target[in_subset], factor)
            if state.due and processes.rank() == 0:
                state.write(tensors, {"epochs": epoch + 1})


def _restore(state: StateFile, tensors: Mapping[str, Tensor]) -> int:
    """Fill the tensors from what an interrupted run saved, and return after how many epochs that was; 0 if nothing that
    fits was saved, or if processes do not read the same."""
    saved = state.read("epochs")
    shapes = {name: value.shape for name, value in tensors.items()}
    if saved is not None and {name: value.shape for name, value in saved.tensors.items()} != shapes:
        saved = None
    epochs = 0 if saved is None else saved.facts["epochs"]
    if not same_on_all(epochs) or saved is None:
        return 0
    for name, value in saved.tensors.items():
        tensors[name].copy_(value)
    return epochs


def _accuracies(
    classifiers: Classifiers, encoder: FrozenEncoder, source: Source, label: Int[Tensor, "n"], work: Work
) -> tuple[list[float], ...]:
    """For each depth, the accuracy of each learning rate; empty if there are no images."""
    if not len(label):
        return ()
    correct = [torch.zeros(len(heads.bias), dtype=torch.int64) for heads in classifiers.heads]
    start = 0
    for part in features_in_parts(encoder, source, work):
        target = label[start : start + len(part)].to(part.device)
        for count, (heads, features) in zip(correct, classifiers.inputs(part), strict=True):
            count += heads.count_correct(features, target).cpu()
        start += len(part)
    return tuple((100.0 * count.double() / len(label)).tolist() for count in correct)


def _best(learning_rates: tuple[float, ...], accuracies: list[float]) -> int:
    """The index of the most accurate learning rate; of the lowest, if several tie."""
    return min(range(len(learning_rates)), key=lambda index: (-accuracies[index], learning_rates[index]))


def _guess(
    classifiers: Classifiers, best: list[int], encoder: FrozenEncoder, test: Source, work: Work
) -> tuple[Int[Tensor, "n t"], ...]:
    guesses: list[list[Tensor]] = [[] for _ in best]
    for part in features_in_parts(encoder, test, work):
        for of_depth, index, (heads, features) in zip(guesses, best, classifiers.inputs(part), strict=True):
            of_depth.append(heads.predict(index, features).cpu())
    return tuple(torch.cat(of_depth) for of_depth in guesses)
