"""What long trainings keep for later: the epochs of a run, the checkpoint of a learning of views, and states in the
cache."""

import json
from dataclasses import replace
from pathlib import Path

import mutations
import torch
from fuzz_targets import Target, of_file, sealing
from tiny import ALLOW, TinyBackbone, images, saved_run, tiny_run
from torch import nn

from vantage.composition.codec import allowing
from vantage.facts.run_facts import facts_of
from vantage.frozen.encoder import load
from vantage.frozen.networks import trained_networks
from vantage.progress import QuietProgress
from vantage.report.curves import curves
from vantage.storage.provenance import provenance
from vantage.storage.state import StateFile, restore, tensors_of
from vantage.studies.view_learning import Game, learn, unsupervised
from vantage.studies.view_learning.images import images_of
from vantage.studies.view_learning.loop import _LearningRun
from vantage.training.folder.kept_epochs import keep_epoch, kept_epochs
from vantage.training.start.warm_start import read_start, recorded_start
from vantage.views import Flow, VolumePreserving

__all__ = ["of_kept"]


def of_kept(folder: Path) -> dict[str, Target]:
    """The targets; writes the files that they need to `folder`."""
    return _epochs(folder) | _a_learning(folder) | _states(folder)


def _epochs(folder: Path) -> dict[str, Target]:
    """Two kept epochs, the later one damaged."""
    run = folder / "keeping"
    saved_run(run, tiny_run())
    row = {"epoch": 1, "step": 4, "loss": 2.5, "accuracy": 0.5, "alignment": 0.5, "uniformity": -2.0, "rank": 6.0}
    (run / "metrics.jsonl").write_text("".join(json.dumps({**row, "epoch": n, "step": 4 * n}) + "\n" for n in (1, 2)))
    (run / "provenance.json").write_text(json.dumps([provenance("a" * 32, 64)]))
    late = [keep_epoch(run, epoch) for epoch in (1, 2)][-1]
    (step,) = (late / "checkpoint").iterdir()

    def read_facts() -> None:
        """What a report reads of every epoch."""
        (facts,) = facts_of([kept_epochs(run)[2]])
        _ = facts.verdict, facts.settings(), facts.origins(), curves([facts])

    def read_checkpoint() -> None:
        """What a measure, and a run that starts from an epoch, read of it."""
        load(kept_epochs(run)[2])
        read_start(late)

    def read_all() -> None:
        read_checkpoint()
        trained_networks(late)
        recorded_start(late)

    kinds = {
        "settings": (late / "settings.json", mutations.damage_tree, read_all),
        "metrics": (late / "metrics.jsonl", mutations.damage_lines, read_facts),
        "provenance": (late / "provenance.json", mutations.damage_tree, read_facts),
        "facts": (step / "facts.json", mutations.damage_tree, read_checkpoint),
        "tensors": (step / "tensors.safetensors", mutations.damage_header, read_checkpoint),
    }
    return {
        f"kept epoch's {name}": of_file(file, folder, damage, sealing(step, read))
        for name, (file, damage, read) in kinds.items()
    }


def _a_learning(folder: Path) -> dict[str, Target]:
    """The checkpoint from which a learning of views continues."""
    base = unsupervised(8, (TinyBackbone(4, 1), TinyBackbone(4, 2)))
    learning = replace(base, flow=Flow(VolumePreserving(4, 2), 3), epochs=1, batch_size=6, device="cpu")
    source = images(40, 0, size=10)
    with allowing(*ALLOW):
        learn(learning, folder / "learned", source=source)
    learned = images_of(learning, source, torch.device("cpu"))
    (*_, step) = sorted((folder / "learned" / "checkpoint").iterdir())

    def go_on() -> None:
        game = Game(learning, learned.classes)
        again = _LearningRun(learning, folder / "learned", learned, game, QuietProgress())
        again.restore(step)
        again._note()
        batch = next(learned.every.batches())
        game.step(batch.images, None)

    read = sealing(step, go_on)
    return {
        "learning's facts": of_file(step / "facts.json", folder, mutations.damage_tree, read),
        "learning's tensors": of_file(step / "tensors.safetensors", folder, mutations.damage_header, read),
    }


def _stepped() -> tuple[nn.Linear, torch.optim.Optimizer]:
    network = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(network.parameters(), 0.1)
    network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return network, optimizer


def _states(folder: Path) -> dict[str, Target]:
    """The state of a stopped training in the cache, taken by an optimizer that keeps several numbers per weight."""
    network, optimizer = _stepped()
    StateFile(folder / "stopped.safetensors").write(tensors_of({"network": network}, optimizer), {"epochs": 2})

    def go_on(file: Path, cache: Path) -> None:
        network, optimizer = _stepped()
        state = StateFile(file).read("epochs")
        if state is not None and restore({"network": network}, optimizer, state.tensors):
            range(state.facts["epochs"])
            optimizer.step()

    return {"kept state of AdamW": of_file(folder / "stopped.safetensors", folder, mutations.damage_header, go_on)}
