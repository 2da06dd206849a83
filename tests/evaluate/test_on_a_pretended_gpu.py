"""Protocols on the pretended device of `pretend_gpu.py` measure what they measure on the CPU: no GPU is needed. All
protocols run on a real one in `test_on_a_gpu.py`, and detectors in `detection/test_detectors_on_gpu.py`.

Of the detectors, one on the fourth stage is tried. With a pyramid they need the gradient of an index, whose parts C++
makes where it sees the tensor: on the CPU, so the pretended device takes it for a mix of devices. Kernels that round
differently, and random numbers drawn on the device, cannot be pretended either."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import short_protocols
import torch
from annotated import small_coco
from pretend_gpu import DEVICE, Pretend, pretended
from shared_detectors import NARROW, WHOLE
from tiny import cpu_work, saved_run, tiny_run

from vantage.encoders import Encoder, LinearHead, Shared
from vantage.encoding import Work
from vantage.evaluate.protocols.detection import open_annotated
from vantage.frozen.encoder import FrozenEncoder, load

SLOW = {"linear-pycontrast", "linear-places", "lowshot-cv", "finetune-chosen"}
"""Protocols that share their work with another one."""
PROTOCOLS = [
    *short_protocols.labeled(epochs=2, learning_rates=(0.1, 1.0), costs=(0.1, 1.0), l2=(1e-3, 1e-2)),
    short_protocols.SEGMENTATION,
]


@pytest.mark.parametrize(
    "protocol",
    [pytest.param(one, id=one.name, marks=pytest.mark.slow if one.name in SLOW else ()) for one in PROTOCOLS],
)
def test_a_protocol_measures_what_it_measures_on_the_cpu(
    protocol: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measures, choices and losses."""
    train, test = short_protocols.sets_for(protocol, tmp_path)
    make = partial(short_protocols.encoder_for, protocol)
    outcome, expected = _on_both(protocol, make, train, test, tmp_path, monkeypatch)
    assert dict(outcome.measures) == pytest.approx(dict(expected.measures)) and outcome.chosen == expected.chosen
    losses = [one.details.get("losses", []) for one in (outcome, expected)]
    assert losses[0] == [pytest.approx(each) for each in losses[1]]


@pytest.mark.slow
def test_a_detector_trains_on_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds little in two steps, but a mix of devices would raise."""
    saved_run(tmp_path / "run", tiny_run(Shared(Encoder(NARROW, LinearHead(8)))))
    small_coco(tmp_path / "coco", images=4)
    source = open_annotated(f"{tmp_path}/coco/annotations/instances_train.json")
    outcome, expected = _on_both(WHOLE, partial(load, tmp_path / "run"), source, source, tmp_path, monkeypatch)
    assert dict(outcome.measures) == pytest.approx(dict(expected.measures), abs=0.1)


def _on_both(
    protocol: Any, make: Callable[[], FrozenEncoder], train: Any, test: Any, folder: Path, patch: pytest.MonkeyPatch
) -> tuple[Any, Any]:
    """The outcomes on the pretended device and on the CPU."""
    expected = protocol(make(), train, test, cpu_work(folder / "cpu"))
    patch.setattr(Work, "resolved_device", lambda _: DEVICE)
    patch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1 << 33))
    encoder = make()
    with Pretend() as mode:
        pretended(encoder.backbone)  # in place, as `.to(device)` does
        outcome = protocol(encoder, train, test, cpu_work(folder / "device"))
    assert any(wait.what == "copy from the device" for wait in mode.waits)
    return outcome, expected
