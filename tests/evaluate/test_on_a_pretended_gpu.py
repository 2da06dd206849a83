"""Protocols on the pretended device of `pretend_gpu.py` measure what they measure on the CPU: no GPU is needed. All
protocols run on a real one in `test_on_a_gpu.py`, and detectors in `detection/test_detectors_on_gpu.py`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pretend_gpu import DEVICE, Pretend, pretended
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.encoding import Work
from vantage.evaluate import KNN, LinearCached, LinearMoCo
from vantage.frozen.encoder import load

PROTOCOLS = (KNN(5), LinearMoCo((30.0, 100.0), 5, batch_size=16), LinearCached((1e-3, 1e-2)))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_protocol_measures_what_it_measures_on_the_cpu(
    protocol: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_run(tmp_path / "run", tiny_run())
    train, test = images(60, 0, noise=150.0), images(30, 1, noise=150.0)
    expected = protocol(load(tmp_path / "run"), train, test, cpu_work(tmp_path / "cpu"))
    assert 50 < expected.measures["top-1"] < 90
    monkeypatch.setattr(Work, "resolved_device", lambda _: DEVICE)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1 << 33))
    encoder = load(tmp_path / "run")
    with Pretend() as mode:
        pretended(encoder.backbone)  # in place, as `.to(device)` does
        outcome = protocol(encoder, train, test, cpu_work(tmp_path / "device"))
    assert any(wait.what == "copy from the device" for wait in mode.waits)
    assert dict(outcome.measures) == pytest.approx(dict(expected.measures)) and outcome.chosen == expected.chosen
