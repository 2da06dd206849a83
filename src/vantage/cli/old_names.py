"""Names of options as earlier versions and other programs have them, so that a mistake can say what they are now."""

__all__ = ["now_called"]

_FLAGS = {
    "data.place": "data",
    "place": "data",
    "data": "sets",
    "data.path": "data",
    "data.on-bad-image": "on-bad-image",
    "data.workers": "num-workers",
    "workers": "num-workers",
    "rate.peak": "learning-rate",
    "rate": "learning-rate",
    "lr": "learning-rate",
    "base-lr": "learning-rate",
    "optimizer.lr": "learning-rate",
    "batch": "batch-size",
    "bs": "batch-size",
    "max-epochs": "epochs",
    "hardware.devices": "devices",
    "gpus": "devices",
    "device": "devices",
    "hardware.precision": "precision",
    "fp16": "precision",
    "amp": "precision",
    "output": "out",
    "output-dir": "out",
    "arch": "backbone",
    "widths": "backbone",
}
"""Flags of an option."""

_FIELDS = {
    "rate": "learning_rate",
    "peak": "base",
    "lr": "base",
    "at_epochs": "milestones",
    "batch": "batch_size",
    "place": "path",
    "workers": "num_workers",
    "spare": "exclude",
    "first_moment": "beta1",
    "second_moment": "beta2",
    "epsilon": "eps",
    "trust": "trust_coefficient",
    "tau": "temperature",
    "temp": "temperature",
    "wd": "weight_decay",
    "queue_size": "length",
    "moco_k": "length",
}
"""Fields of a composition."""


def now_called(flag: str) -> tuple[str, str]:
    """The flag that does what an old one did, and the path of the field that it set, as these are called now."""
    plain = flag.lstrip("-")
    parts = plain.replace("-", "_").split(".")
    path = ".".join(_FIELDS.get(part, part) for part in parts)
    return f"--{_FLAGS.get(plain, plain)}", "data.max_images" if path == "data.images" else path
