"""The game: a flow against critics, and with classifiers; one step of it.

Eq. 2 and 3 of InfoMin (arXiv 2005.10243) are min over g, c₁, c₂ and max over f₁, f₂ of one sum. So g and the
classifiers go down its gradient, and the critics go up the same one.

b: images   l: labeled images   h, w: height and width in pixels
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage.errors import UserError
from vantage.studies.view_learning.learning import ViewLearning
from vantage.studies.view_learning.terms import TermNetwork

__all__ = ["Game", "LabeledBatch", "NotFinite", "Players", "Objective"]


class NotFinite(UserError):
    """A loss or a gradient is no longer finite; no parameter has been moved by it."""


class LabeledBatch(NamedTuple):
    """Images that go into the flow, with their labels."""

    images: Float[Tensor, "l 3 h w"]
    """Channels, normalized."""

    label: Int[Tensor, "l"]
    """Labels from 0."""


class Objective(NamedTuple):
    """The objective at some images."""

    total: Float[Tensor, ""]
    """The weighted sum of the terms."""

    numbers: dict[str, Float[Tensor, ""]]
    """Numbers to report, without a gradient."""


class Players(nn.Module):
    """The flow and the networks of the terms: all that changes while views are learned."""

    def __init__(self, learning: ViewLearning, classes: int) -> None:
        """Freshly initialized from torch's default generator; the flow is the identity."""
        super().__init__()
        self.channels = learning.channels
        self.flow = learning.flow.build()
        self.scaling = learning.scaling.build()
        self.terms = nn.ModuleList(term.build(classes) for term in learning.terms)

    def each_term(self) -> Iterable[TermNetwork]:
        """The networks of the terms."""
        for term in self.terms:
            assert isinstance(term, TermNetwork)
            yield term

    def views(
        self, images: Float[Tensor, "b 3 h w"]
    ) -> tuple[Float[Tensor, "b _ h w"], Float[Tensor, "b _ h w"], Float[Tensor, ""]]:
        """The two views, and the logarithm of the volume of a pixel, on average."""
        colors, volume = self.flow(images)
        colors = self.scaling(colors)
        one, two = (colors[:, list(part)] for part in self.channels)
        return one, two, volume.detach().mean() / images[0, 0].numel()

    def objective(self, images: Float[Tensor, "b 3 h w"] | None, labeled: LabeledBatch | None) -> Objective:
        """Eq. 2 or 3: terms of all images at `images`, terms of labels at `labeled`.

        What no term needs may be None.
        """
        total, reports = torch.zeros((), device=next(self.parameters()).device), {}
        for batch, of_labels in ((images, False), (None if labeled is None else labeled.images, True)):
            terms = [term for term in self.each_term() if term.labeled == of_labels]
            if not terms:
                continue
            assert batch is not None, "a term has no images to look at"
            one, two, volume = self.views(batch)
            reports.setdefault("log_det", volume)
            for term in terms:
                value, numbers = term(one, two, labeled.label if of_labels and labeled else None)
                total, reports = total + term.weight * value, reports | numbers
        return Objective(total, reports)


class Game:
    """The players and the two optimizers that move them."""

    def __init__(self, learning: ViewLearning, classes: int, device: torch.device | str = "cpu") -> None:
        """Players freshly initialized from the learning's seed, on a device."""
        with torch.random.fork_rng(devices=[]):  # the caller's generator stays where it is
            torch.manual_seed(learning.seed)
            self.players = Players(learning, classes).to(device)
        self.critic_steps = learning.updates.critic_steps
        rates = learning.rates
        self.critics = [p for term in self.players.each_term() if term.opposes for p in term.parameters()]
        allies = [p for term in self.players.each_term() if not term.opposes for p in term.parameters()]
        groups = [{"params": list(self.players.flow.parameters()), "lr": rates.generator}]
        groups += [{"params": allies, "lr": rates.classifiers}] if allies else []
        self.descent: torch.optim.Optimizer = torch.optim.Adam(groups, betas=rates.betas)
        ascent = torch.optim.Adam(self.critics, lr=rates.critics, betas=rates.betas) if self.critics else None
        self.ascent: torch.optim.Optimizer | None = ascent

    def step(
        self, images: Float[Tensor, "b 3 h w"] | None, labeled: LabeledBatch | None
    ) -> dict[str, Float[Tensor, ""]]:
        """One step of the generator, and those of the critics that go with it.

        Raises `NotFinite`, before anything is moved by it, where a loss or a gradient is not finite.
        """
        self.players.train()
        if self.ascent is not None:
            for _ in range(self.critic_steps):
                self._train_critics(images)
        alternating = self.ascent is not None and self.critic_steps > 0
        for parameter in self.critics:
            parameter.requires_grad_(not alternating)
        total, numbers = self.players.objective(images, labeled)
        total.backward()
        for parameter in self.critics:
            parameter.requires_grad_(True)
        _check(total, self.players.parameters())
        self.descent.step()
        if self.ascent is not None and not alternating:
            _negate_gradients(self.critics)
            self.ascent.step()
        self._clear_gradients()
        return numbers

    def _train_critics(self, images: Float[Tensor, "b 3 h w"] | None) -> None:
        """One step of the critics up the objective, on views that are held fixed."""
        assert images is not None and self.ascent is not None
        with torch.no_grad():
            one, two, _ = self.players.views(images)
        opposing = [term for term in self.players.each_term() if term.opposes]
        total = torch.stack([term.weight * term(one, two, None)[0] for term in opposing]).sum()
        total.backward()
        _check(total, self.critics)
        _negate_gradients(self.critics)
        self.ascent.step()
        self._clear_gradients()

    def _clear_gradients(self) -> None:
        for optimizer in (self.descent, self.ascent):
            if optimizer is not None:
                optimizer.zero_grad(set_to_none=True)


def _negate_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """The other sign for every gradient: up, where optimizers go down."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.neg_()


def _check(total: Float[Tensor, ""], parameters: Iterable[nn.Parameter]) -> None:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    size = torch.stack([gradient.norm() for gradient in gradients]).norm()
    if not torch.isfinite(total + size):
        raise NotFinite(f"the objective is {total.item():g} and the size of its gradient {size.item():g}")
