"""One step of the game: a flow against critics, with the help of classifiers.

Eq. 2 and 3 of InfoMin (arXiv 2005.10243) are min over g, c₁, c₂ and max over f₁, f₂ of one sum. So g and the
classifiers descend its gradient, and the critics ascend the same one.

b: images   l: labeled images   h, w: height and width in pixels
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage import draws
from vantage.errors import UserError
from vantage.studies.view_learning.learning import ViewLearning
from vantage.studies.view_learning.terms import TermNetwork

__all__ = ["Game", "LabeledBatch", "NotFinite", "Players", "Objective"]


class NotFinite(UserError):
    """A loss or a gradient is no longer finite; it has not changed any parameter."""


class LabeledBatch(NamedTuple):
    """Input images of the flow, with their labels."""

    images: Float[Tensor, "l 3 h w"]
    """Normalized channels."""

    label: Int[Tensor, "l"]
    """Labels from 0."""


class Objective(NamedTuple):
    """The objective on some images."""

    total: Float[Tensor, ""]
    """The weighted sum of the terms."""

    numbers: dict[str, Float[Tensor, ""]]
    """Numbers to report, without gradients."""


class Players(nn.Module):
    """The flow and the networks of the terms: everything that is trained."""

    def __init__(self, learning: ViewLearning, classes: int) -> None:
        """Initialize from torch's default generator; the flow starts as the identity."""
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
        """The two views, and the flow's mean logarithm of the volume (log |det| of its Jacobian) per pixel."""
        colors, volume = self.flow(images)
        colors = self.scaling(colors)
        one, two = (colors[:, list(part)] for part in self.channels)
        return one, two, volume.detach().mean() / images[0, 0].numel()

    def objective(self, images: Float[Tensor, "b 3 h w"] | None, labeled: LabeledBatch | None) -> Objective:
        """Eq. 2 or 3: the terms of all images on `images`, and the terms of labels on `labeled`.

        An argument may be None if no term needs it.
        """
        total, reports = torch.zeros((), device=next(self.parameters()).device), {}
        for batch, of_labels in ((images, False), (None if labeled is None else labeled.images, True)):
            terms = [term for term in self.each_term() if term.labeled == of_labels]
            if not terms:
                continue
            assert batch is not None, "there are no images for a term"
            one, two, volume = self.views(batch)
            reports.setdefault("log_det", volume)
            for term in terms:
                value, numbers = term(one, two, labeled.label if of_labels and labeled else None)
                total, reports = total + term.weight * value, reports | numbers
        return Objective(total, reports)


class Game:
    """The players and their two optimizers."""

    def __init__(self, learning: ViewLearning, classes: int, device: torch.device | str = "cpu") -> None:
        """Initialize the players from the learning's seed, on a device."""
        with draws.torch_seed(learning.seed):
            self.players = Players(learning, classes).to(device)
        self.critic_steps = learning.updates.critic_steps
        rates = learning.learning_rates
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
        """One step of the generator, with the critics' steps that belong to it.

        Raises `NotFinite` if a loss or a gradient is not finite, before it changes any parameter.
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
        """One step of the critics up the objective, on fixed views."""
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
    """Negate every gradient: optimizers descend, but critics must ascend."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.neg_()


def _check(total: Float[Tensor, ""], parameters: Iterable[nn.Parameter]) -> None:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    size = torch.stack([gradient.norm() for gradient in gradients]).norm()
    if not torch.isfinite(total + size):
        raise NotFinite(f"the objective is {total.item():g} and the size of its gradient {size.item():g}")
