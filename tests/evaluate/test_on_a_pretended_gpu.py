"""Protocols on the pretended device of `pretend_gpu.py` measure what they measure on the CPU: no GPU is needed. All
protocols run on a real one in `test_on_a_gpu.py`, and detectors in `detection/test_detectors_on_gpu.py`.

Detectors are not tried here. With a pyramid they need the gradient of an index, whose parts C++ makes where it sees the
tensor: on the CPU, so the pretended device takes it for a mix of devices. On the fourth stage they run, but for half a
minute each. Kernels that round differently, and random numbers drawn on the device, cannot be pretended either."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import short_protocols
import torch
from pretend_gpu import DEVICE, Pretend, pretended
from tiny import cpu_work

from vantage.encoding import Work

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
    expected = protocol(short_protocols.encoder_for(protocol), train, test, cpu_work(tmp_path / "cpu"))
    monkeypatch.setattr(Work, "resolved_device", lambda _: DEVICE)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1 << 33))
    encoder = short_protocols.encoder_for(protocol)
    with Pretend() as mode:
        pretended(encoder.backbone)  # in place, as `.to(device)` does
        outcome = protocol(encoder, train, test, cpu_work(tmp_path / "device"))
    assert any(wait.what == "copy from the device" for wait in mode.waits)
    assert dict(outcome.measures) == pytest.approx(dict(expected.measures)) and outcome.chosen == expected.chosen
    losses = [one.details.get("losses", []) for one in (outcome, expected)]
    assert losses[0] == [pytest.approx(each) for each in losses[1]]
