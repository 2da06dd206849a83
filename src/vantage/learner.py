"""Everything that changes during a run, and one training step.

b: images here   v: views   d: width
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage import draws, processes
from vantage.branch import Branch, BranchLoss, owners
from vantage.composition.fitting import everywhere, parts_of
from vantage.encoders.normalization.grouped import average_statistics
from vantage.encoders.roles import KeysFirst, Role
from vantage.errors import UserError
from vantage.estimators import EstimatorChoice, TableEstimator
from vantage.memory import Store, StoreOf
from vantage.memory.rows import RowStore
from vantage.records import Keys, Scores
from vantage.schedules import Adaptive, AdaptiveState, Constant
from vantage.step import (
    Fresh,
    GatheredKeys,
    Step,
    StepKeys,
    StepSeeds,
    Watched,
    joint_keys,
    joint_loss,
)

__all__ = ["Fresh", "Learner", "Step"]


class Learner(nn.Module):
    """The encoders, a store for each branch, and the estimators that keep state. Its `state_dict` is that of the run.

    >>> import torch, vantage
    >>> run = vantage.moco_v2(size=32)
    >>> learner = vantage.Learner(run.encoders, run.branches, images=1000, seed=0)
    >>> views = [torch.randn(16, 3, 32, 32), torch.randn(16, 3, 32, 32)]
    >>> step = learner(views, torch.arange(16), step=0)
    >>> step.loss.shape
    torch.Size([])
    """

    def __init__(self, role: Role, branches: tuple[Branch, ...], images: int, seed: int) -> None:
        """Draws the initial weights from torch's default generator: seed it first. Raises `UserError` for parts that do
        not fit together."""
        super().__init__()
        if not branches:
            raise UserError("a run without branches has nothing to learn: give at least one Branch")
        if any(isinstance(part, Adaptive) for part in parts_of(role)):
            raise UserError("only numbers of branches can follow the loss or the accuracy: give the role a schedule")
        self.branches = branches
        self.networks = role.build()
        self.owners = owners(branches)
        self.stores = nn.ModuleDict()
        for number, branch in enumerate(branches):
            if not isinstance(branch.memory, StoreOf):
                self.stores[str(number)] = branch.memory.build(images, self.networks.width)
        # DDP would overwrite every process's rows of a sharded bank with those of rank 0; other buffers are equal.
        self._ddp_params_and_buffers_to_ignore = [f"stores.{name}" for name, _ in self.stores.named_buffers()]
        self.estimators = nn.ModuleDict()
        for number, branch in enumerate(branches):
            if isinstance(branch.estimator, EstimatorChoice):
                state = branch.estimator.build(images)
                assert isinstance(state, nn.Module)
                self.estimators[str(number)] = state
        self.adaptive = list(dict.fromkeys(part for part in parts_of(branches) if isinstance(part, Adaptive)))
        self.adapted = nn.ModuleList(choice.build() for choice in self.adaptive)
        self.seed = seed
        self.query_views = sorted({branch.query for branch in branches})
        self.watched = sorted(min(n for n, b in enumerate(branches) if b.query == view) for view in self.query_views)
        self.key_views = sorted({view for branch in branches for view in (*branch.keys, *branch.pool_views)})

    @property
    def views(self) -> int:
        """How many views of each image the branches need."""
        return max(branch.views for branch in self.branches)

    def forward(
        self,
        views: list[Float[Tensor, "b ..."]],
        image: Int[Tensor, "b"],
        step: int,
        keys: Callable[[], StepKeys] | None = None,
    ) -> Step:
        """The loss of a batch. `image` holds the images' numbers in the data set; `step` counts optimizer steps from 0.
        `keys` returns those of an accumulated part, if `encode_keys_first` encoded them; as tensors among the
        arguments, Fabric would round them to the precision of the networks.

        Raises `UserError` if there are fewer views than the branches name.
        """
        if len(views) < self.views:
            raise UserError(
                f"the branches need {self.views} views, but {len(views)} were made: add views or change Branch.keys"
            )
        if keys:
            return self.contrast(self._queries(views), keys(), image, step, self.seeds({}, image, step))
        return self.compute(views, image, step, self.seeds(self.orders(views, step), image, step))

    def orders(self, views: list[Tensor] | dict[int, Tensor], step: int) -> dict[int, Int[Tensor, "n"]]:
        """The orders that keys of these views are encoded in (`RoleNetworks.orders`)."""
        return self.networks.orders({n: views[n] for n in self.key_views}, draws.mix(self.seed, step, 1))

    def seeds(self, orders: dict[int, Int[Tensor, "n"]], image: Int[Tensor, "b"], step: int) -> StepSeeds:
        """The seeds of a step with these images."""
        return StepSeeds(orders, draws.query_seeds(self.seed, step, image), draws.mix(self.seed, step))

    @torch.no_grad()
    def encode_keys_first(
        self, views: list[list[Float[Tensor, "b ..."]]], images: list[Int[Tensor, "b"]], step: int
    ) -> list[StepKeys]:
        """The keys of all accumulated parts of a batch, for networks that are `KeysFirst`. `views` and `images` are
        those of each part."""
        assert isinstance(self.networks, KeysFirst)
        joint = {n: torch.cat([part[n] for part in views]) for n in self.key_views}
        vectors = self.networks.keys_of_parts(joint, len(views), self.orders(joint, step))
        batch = GatheredKeys(vectors, processes.gather_joint(torch.cat(images), len(images)))
        return [StepKeys(part.own, part, batch) for part in batch.parts(len(views))]

    def compute(
        self, views: list[Float[Tensor, "b ..."]], image: Int[Tensor, "b"], step: int, seeds: StepSeeds
    ) -> Step:
        """`forward` with the seeds given. `compile_learner` may put a compiled version here."""
        queries, vectors = self.encode(views, seeds.orders)
        keys = GatheredKeys(vectors, processes.gather(image))
        return self.contrast(queries, StepKeys(keys.own, keys, keys), image, step, seeds)

    def encode(
        self, views: list[Float[Tensor, "b ..."]], orders: dict[int, Int[Tensor, "n"]]
    ) -> tuple[dict[int, Float[Tensor, "b d"]], dict[int, Float[Tensor, "w_b d"]]]:
        """The vectors of queries and of keys, by view. `record_networks` may put a recorded version here."""
        queries = self._queries(views)
        return queries, self.networks.keys({n: views[n] for n in self.key_views}, queries, orders)

    def _queries(self, views: list[Tensor]) -> dict[int, Tensor]:
        return self.networks.queries({n: views[n] for n in self.query_views})

    def contrast(
        self, queries: dict[int, Tensor], keys: StepKeys, image: Int[Tensor, "b"], step: int, seeds: StepSeeds
    ) -> Step:
        """The losses of the vectors of queries, by view."""
        branches = self._now()
        with torch.autocast(image.device.type, enabled=False):
            contrasts = [self._contrast(n, b, queries, image, keys, step, seeds) for n, b in enumerate(branches)]
            terms = torch.stack([b.weight(step) * c.loss for b, c in zip(branches, contrasts, strict=True)])
            shares = torch.stack([contrast.share for contrast in contrasts])
            vectors = {n: vector.detach() for n, vector in keys.part.vectors.items()}
            fresh = Fresh(vectors, keys.part.image, terms.detach(), shares)
            watched = {n: self._watch(n, queries, contrasts[n].positive, image, keys.batch) for n in self.watched}
        losses = torch.stack([contrast.loss.detach() for contrast in contrasts])
        return Step(terms.sum(), fresh, watched, losses, terms)

    def _now(self) -> tuple[Branch, ...]:
        """The branches, with adaptive numbers replaced by their current values."""
        if not self.adaptive:
            return self.branches
        values = {choice: Constant(value) for choice, value in zip(self.adaptive, self.adaptive_values(), strict=True)}
        return everywhere(self.branches, lambda part: values[part] if isinstance(part, Adaptive) else part)

    def adaptive_values(self) -> list[float]:
        """The values of adaptive numbers, in the order of the branches."""
        return [float(state.value) for state in self.adapted if isinstance(state, AdaptiveState)]

    def _watch(
        self, number: int, queries: dict[int, Tensor], positive: Scores, image: Tensor, keys: GatheredKeys
    ) -> Watched:
        query, rivals = queries[self.branches[number].query].detach(), self._rivals(number, keys)
        cosine = positive.cosine.detach().masked_fill(~positive.keep, 0.0).sum(1) / positive.keep.sum(1).clamp(min=1)
        nearest = (query @ rivals.T).masked_fill(image[:, None] == keys.image, -1.0).amax(1)
        return Watched(query, cosine, nearest)

    def _rivals(self, number: int, keys: GatheredKeys) -> Tensor:
        """What the positives of these images are measured against: if they are rows of a bank, these images' rows."""
        branch, store = self.branches[number], self.store(number)
        if not branch.keys and isinstance(store, RowStore):
            return store.rows[keys.image]
        return keys.vectors[(branch.keys or branch.pool_views)[0]].detach()

    def _contrast(
        self,
        number: int,
        branch: Branch,
        queries: dict[int, Tensor],
        image: Tensor,
        fresh: StepKeys,
        step: int,
        seeds: StepSeeds,
    ) -> BranchLoss:
        query = Keys(queries[branch.query], image, seed=seeds.query, step_seed=seeds.step)
        keys = tuple(Keys(fresh.own[view], image) for view in branch.keys)
        pool = self.store(number).read(fresh.batch.keys(branch))
        return branch.contrast(query, keys, pool, step, self._state(number))

    @property
    def waits(self) -> bool:
        """Whether an estimator still needs to see a whole batch (`TableEstimator.waits`)."""
        return any(isinstance(state, TableEstimator) and state.waits for state in self.estimators.values())

    def store(self, branch: int) -> Store:
        """The store that the branch of this number reads."""
        store = self.stores[str(self.owners[branch])]
        assert isinstance(store, Store)
        return store

    def _state(self, branch: int) -> TableEstimator | None:
        """The estimator that a branch's `EstimatorChoice` built; `None` if the estimator is a value."""
        if str(branch) not in self.estimators:
            return None
        state = self.estimators[str(branch)]
        assert isinstance(state, TableEstimator)
        return state

    def before_step(self, step: int) -> None:
        """Call once before the forward passes of an optimizer step: a momentum encoder may move."""
        self.networks.before_step(step)

    @torch.no_grad()
    def after_step(self, fresh: list[Fresh], step: int) -> None:
        """Call once after an optimizer step, with the fresh keys of each part of its batch: running statistics are
        averaged over processes, a momentum encoder may move, numbers that follow the loss adapt, and every store is
        written once, with the keys of all parts."""
        average_statistics(self.networks)
        self.networks.after_step(step)
        self._adapt(joint_loss(fresh).neg(), accuracy=False)
        keys = joint_keys(fresh)
        for number, branch in enumerate(self.branches):
            if self.owners[number] == number:
                self.store(number).write(keys.keys(branch))

    def after_validation(self, accuracy: float) -> None:
        """Call once after a validation, on every process: numbers that follow the accuracy adapt."""
        self._adapt(torch.tensor(accuracy, dtype=torch.float64), accuracy=True)

    def _adapt(self, score: Float[Tensor, ""], accuracy: bool) -> None:
        """Move the numbers that follow this score (an accuracy, or a negated loss), averaged over processes."""
        pairs = zip(self.adaptive, self.adapted, strict=True)
        states = [state for choice, state in pairs if choice.needs_accuracy == accuracy]
        if states:
            device = next(states[0].buffers()).device
            mean = processes.total(score.to(device)) / processes.count()
            for state in states:
                assert isinstance(state, AdaptiveState)
                state.update(mean)
