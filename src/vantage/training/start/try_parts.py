"""Try a run before its first epoch, so that parts that do not fit are refused before anything is written.

Networks are tried on views of real images, and every branch on random vectors, at the first step and at the last.
"""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.modules.batchnorm import _BatchNorm

from vantage import draws
from vantage.branch import Branch, owners, with_clusters
from vantage.composition.fitting import Fits, everywhere, parts_of
from vantage.data import Source
from vantage.encoders import Encoder, RoleNetworks
from vantage.encoders.activations import bytes_for_backward
from vantage.encoders.normalization.grouped import share_of_groups
from vantage.encoders.weights import build_without_numbers
from vantage.errors import UserError, first_line, naming, with_place
from vantage.estimators import EstimatorChoice, TableEstimator
from vantage.machine.allocator import check_memory, check_views
from vantage.machine.devices import uses_cuda
from vantage.memory import StoreOf
from vantage.negatives import Rule
from vantage.partition.table import negatives_of
from vantage.records import Keys, Scores
from vantage.schedules import Adaptive, Constant
from vantage.training.computing.passes import encodes_apart
from vantage.training.run import Run
from vantage.training.start.try_evaluation import try_evaluation
from vantage.training.start.try_views import SAMPLES, some_images, some_views

__all__ = ["check_groups", "try_branches", "try_networks"]

_FEWEST, _MOST, _BATCH, _WIDTH = 64, 1_024, 8, 16  # images that a memory is built for on trial; a batch of them


def try_networks(run: Run, source: Source) -> int:
    """Side of the first view, in pixels.

    Raises `UserError` if the views cannot be made from these images, if a network refuses a view (naming it) or the
    one that it is evaluated in, if a batch of views would fill a quarter of the memory, or if the activations kept for
    the backward pass would fill all of it. Freshly built networks encode views of two images in evaluation mode.
    Torch's default generator is not changed.
    """
    with torch.random.fork_rng(devices=[]):
        samples = some_images(source)
        views = some_views(run, samples)
        each = sum(4 * view[0].numel() for view in views)
        device = "cuda" if uses_cuda(run.hardware.accelerator) else "cpu"
        images, remedy = run.batch_size // run.parts, "give a smaller batch or view, or more accumulated parts"
        networks, activation_bytes = run.encoders.build().eval(), 0
        if encodes_apart(networks, run.branches, run.accumulate):
            check_views(images * run.accumulate, each, device, "give a smaller batch or view")
        else:
            check_views(images, each, device, remedy)
        queries = {branch.query for branch in run.branches}
        numbers = {n for branch in run.branches for n in (branch.query, *branch.keys, *branch.pool_views)}
        for number in sorted(numbers):
            for stage, view in enumerate(_sizes(run, views[number])):
                try:
                    bytes_of_view = bytes_for_backward(networks, partial(networks.queries, {number: view}))
                except Exception as problem:  # a user's network may raise anything
                    raise UserError(_misfit(run, number, view, problem)) from problem
                if run.batch_size == 1:
                    _try_one_image(networks, number, view)
                if number in queries and stage == 0:
                    activation_bytes += bytes_of_view
        try_evaluation(run, networks, samples[0])
        half = 0.5 if run.hardware.precision == "bf16-mixed" else 1.0
        check_memory(
            int(half * images * activation_bytes / SAMPLES),
            device,
            f"the backward pass of {images:,} images at once",
            remedy,
        )
    return views[0].shape[-1]


@torch.no_grad()
def _try_one_image(networks: RoleNetworks, number: int, view: Tensor) -> None:
    """Raises `UserError` if the networks cannot train on one image, as BatchNorm cannot on a single vector."""
    networks.train()
    try:
        networks.queries({number: view[:1]})
    except Exception as problem:  # a user's network may raise anything
        words = "the encoder cannot train on one image at a time: use a batch of 2 or more"
        raise UserError(f"{words} ({first_line(problem)})") from problem
    networks.eval()


def _sizes(run: Run, view: Tensor) -> list[Tensor]:
    """A view and, if the run resizes views, the same view as small as at the start of the run."""
    return [view] if run.resizing is None else [view, run.resizing(view, 0.0)]


def _misfit(run: Run, number: int, view: Tensor, problem: Exception) -> str:
    channels, height, width = view.shape[-3:]
    expected = sorted(
        {part.in_channels for part in parts_of(run.encoders) if hasattr(part, "in_channels")} - {channels}
    )
    if len(expected) == 1:
        remedy = f"the backbone's in_channels is {expected[0]}, set it to {channels}"
    else:
        remedy = "give larger views or another backbone"
    return (
        f"the encoder does not fit view {number}, which has {channels} channels and {height} x {width} pixels: {remedy}"
        f" ({first_line(problem)})"
    )


def try_branches(run: Run, images: int = _FEWEST, steps: int | None = None) -> None:
    """Raises `UserError` naming the first branch whose parts do not work together, or that has no negatives.

    `images` is the number of training images, for 1,024 of which memories are fitted on trial (for 64 if there are
    fewer), with random vectors. `steps` is the number of optimizer steps, if it is not that of the whole run. At the
    last one, schedules have reached their end and adaptive numbers are set to theirs, so a share that would leave
    [0, 1] during training is refused at once.
    """
    steps = run.epochs * run.steps_per_epoch(images) if steps is None else steps
    check_groups(run)
    batch, images = min(_BATCH, run.batch_size), max(_FEWEST, min(images, _MOST))
    for number, (branch, owner) in enumerate(zip(run.branches, owners(run.branches), strict=True)):
        whole = replace(branch, memory=run.branches[owner].memory)
        try:
            _try(whole, images, batch, 0)
            if steps > 1:
                _try(everywhere(whole, _at_its_end), images, batch, steps - 1)
        except UserError as problem:
            raise UserError(f"branch {number} cannot work: {problem}") from problem
        except Exception as problem:  # a user's part may raise anything
            raise UserError(f"branch {number} cannot work: {with_place(problem)}") from problem


def _at_its_end(part: object) -> object:
    return Constant(part.end) if isinstance(part, Adaptive) else part


def check_groups(run: Run) -> None:
    """Raises `UserError` if the joint batch does not divide evenly into the groups of BatchNorm, or the groups do not
    divide among processes and accumulated parts. No images are needed."""
    for encoder in parts_of(run.encoders):
        if isinstance(encoder, Encoder):
            try:
                _check_shares(run, encoder.normalization.groups)
            except UserError:
                if _has_batch_norm(encoder):  # asked last: its network is built for it
                    raise


def _check_shares(run: Run, groups: int) -> None:
    images = run.batch_size
    if groups > 1 and (images % groups or images < 2 * groups):
        raise UserError(
            f"BatchNorm would split {images} images into {groups} groups, which must be equal and hold two or"
            f" more: use a batch of {2 * groups} or another multiple of {groups}, or fewer groups"
        )
    share_of_groups(groups, run.accumulate, run.hardware.processes)


def _has_batch_norm(encoder: Encoder) -> bool:
    return any(isinstance(layer, _BatchNorm) for layer in build_without_numbers(encoder.build).modules())


def _try(branch: Branch, images: int, batch: int, step: int) -> None:
    assert not isinstance(branch.memory, StoreOf)
    memory = branch.memory.fit_to(images, batch) if isinstance(branch.memory, Fits) else branch.memory
    store = memory.build(images, _WIDTH)
    if store.waits:
        rows = Keys(normalize(torch.randn(images, _WIDTH), dim=1), torch.arange(images))
        store.begin(rows.rows(store.share))
    state = branch.estimator.build(images) if isinstance(branch.estimator, EstimatorChoice) else None
    _check_temperature(branch.estimator)
    image = torch.arange(batch).flip(0) + images // 2  # so that no image has the number of its row
    fresh = [Keys(normalize(torch.randn(batch, _WIDTH), dim=1), image) for _ in range(branch.views)]
    vector = fresh[branch.query].vector.clone().requires_grad_()
    query = Keys(vector, image, seed=draws.query_seeds(0, 0, image), step_seed=0)
    memory_keys = branch.remember(tuple(fresh[view] for view in branch.pool_views))
    keys = tuple(fresh[view] for view in branch.keys)
    pool = store.read(memory_keys)
    held = [(t, t._version) for part in (query, *keys, pool) for t in vars(part).values() if isinstance(t, Tensor)]
    if isinstance(pool, Keys):
        _check_rules(branch.negatives, with_clusters(query, pool), pool, step)
    result = branch.contrast(query, keys, pool, step, state)
    if any(t._version != version for t, version in held):
        raise UserError("a part changes the keys that it gets, which others and the memory read too: change a copy")
    if not result.loss.requires_grad:
        raise UserError("no gradient reaches the queries: compute the loss from cosines that are not detached")
    result.loss.backward()
    if not torch.isfinite(result.loss) or vector.grad is None or not torch.isfinite(vector.grad).all():
        raise UserError(f"on random vectors the loss is {result.loss.item()}: check the temperature and the rules")
    if not result.positive.keep.any():
        rule = type(branch.positives).__name__
        raise UserError(
            f"no query has a positive, so there is nothing to learn: {rule} keeps no pair of {batch} queries"
        )
    if not vector.grad.any():
        raise UserError(
            f"with {batch} image(s) at once no query meets a negative, so there is nothing to learn: "
            "give a larger batch, or a memory"
        )
    store.write(memory_keys)


def _check_temperature(estimator: object) -> None:
    """Raises `UserError` for an estimator that gets the sum over its negatives, but whose τ is no number."""
    if isinstance(estimator, TableEstimator | EstimatorChoice):
        return
    temperature = getattr(estimator, "temperature", None)
    if not isinstance(temperature, int | float):
        raise UserError(
            f"{type(estimator).__name__}.temperature is {temperature!r}, and the negatives are added up with a number:"
            " if τ follows a schedule or is learned, inherit from TableEstimator, which gets every negative"
        )


def _no_scores(found: object) -> str | None:
    """What a rule returned in place of scores with a boolean for each pair, in words; None if it did not."""
    if not isinstance(found, Scores):
        return f"a {type(found).__name__}"
    if found.keep.dtype != torch.bool:
        return f"a mask of {found.keep.dtype}"
    if found.keep.shape != found.cosine.shape:  # one that spreads over all queries or keys would be counted wrongly
        return f"a mask of {tuple(found.keep.shape)} for pairs of {tuple(found.cosine.shape)}"
    return None


def _check_rules(rules: tuple[Rule, ...], query: Keys, pool: Keys, step: int) -> None:
    """Raises `UserError` for a rule that returns no scores, or that counts pairs which an earlier one dropped."""
    row = torch.arange(len(query))[:, None]
    for number, rule in enumerate(rules):
        before = negatives_of(query, pool, rules[:number], step)
        with naming(f"the rule {type(rule).__name__}"):
            after = negatives_of(query, pool, rules[: number + 1], step)
        if mistake := _no_scores(after):
            raise UserError(
                f"the rule {type(rule).__name__} returns {mistake}: return scores.only(keep), a boolean for each pair"
            )
        counted = torch.zeros(len(query), len(pool), dtype=torch.bool)
        counted[row.expand_as(before.key)[before.keep], before.key[before.keep]] = True
        if (after.keep & ~counted[row, after.key]).any():
            raise UserError(
                f"the rule {type(rule).__name__} counts pairs that an earlier rule dropped: return scores.only(…), or"
                " look at scores.keep"
            )
