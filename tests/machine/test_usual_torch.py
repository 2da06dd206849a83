"""These settings of torch, which a script or notebook may have changed, affect no run and no number, and are kept."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from counting import Counting
from run_states import assert_equal, rows, state
from small_runs import small_run, write_images
from tiny import cpu_work, tiny_run

from vantage.curation import find_outliers
from vantage.evaluate import KNN, FineTune, LinearMoCo, evaluate
from vantage.evaluate.task import EvaluationProtocol
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import load, random_encoder
from vantage.frozen.feature_cache import features_of
from vantage.frozen.features import embed
from vantage.machine.usual_torch import usual_torch
from vantage.training.loop import train
from vantage.training.run import Monitoring, Run


@contextmanager
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


SETTINGS: list[Callable[[], AbstractContextManager[object]]] = [
    double,
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.autocast("cpu", torch.bfloat16),
    lambda: torch.device("meta"),
]
settings = pytest.mark.parametrize("setting", SETTINGS, ids=["double", "no_grad", "inference", "autocast", "meta"])


def settings_now() -> tuple[object, ...]:
    autocast = torch.is_autocast_enabled("cpu")
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast
    return *modes, torch.get_default_dtype(), torch.get_default_device()


@settings
def test_within_the_block_torch_has_its_defaults_and_afterwards_the_callers_settings(
    setting: Callable[[], AbstractContextManager[object]],
) -> None:
    with setting():
        before = settings_now()
        with pytest.raises(ValueError, match="within"), usual_torch():
            assert settings_now() == (True, False, False, torch.float32, torch.device("cpu"))
            raise ValueError("within")
        assert settings_now() == before


@contextmanager
def all_settings() -> Iterator[None]:
    with ExitStack() as stack:
        for setting in SETTINGS:
            stack.enter_context(setting())
        yield


def short_run(tmp_path: Path) -> Run:
    run = small_run("simclr", write_images(tmp_path / "images.npz"), epochs=1).rescale(batch_size=24)
    return replace(run, monitoring=Monitoring())  # one checkpoint, at the end


@pytest.mark.slow
def test_a_run_is_the_same(tmp_path: Path) -> None:
    run = short_run(tmp_path)
    train(run, tmp_path / "usual")
    with all_settings():
        train(run, tmp_path / "other")
        encoder = load(tmp_path / "other")
    assert_equal(state(tmp_path / "usual"), state(tmp_path / "other"))
    assert rows(tmp_path / "usual") == rows(tmp_path / "other")
    assert encoder.digest() == load(tmp_path / "usual").digest()


def test_training_in_bfloat16_is_the_same_within_an_autocast_of_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch forgets the weights that it has cast at the end of the outermost autocast only."""
    monkeypatch.setattr("vantage.training.computing.launch.has_bf16", lambda on_cuda: True)
    run = short_run(tmp_path)
    run = replace(run, hardware=replace(run.hardware, precision="bf16-mixed"))
    train(run, tmp_path / "usual")
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", torch.bfloat16):
        train(run, tmp_path / "other")
    assert rows(tmp_path / "usual") == rows(tmp_path / "other")
    assert_equal(state(tmp_path / "usual"), state(tmp_path / "other"))


@settings
def test_embeddings_and_searches_are_the_same(
    setting: Callable[[], AbstractContextManager[object]], tmp_path: Path
) -> None:
    source, work = Counting(), cpu_work(tmp_path)
    usual = find_outliers(random_encoder(tiny_run()), source, work)
    file = write_embeddings(random_encoder(tiny_run()), source, tmp_path / "usual.npy", work)
    with setting():
        encoder = random_encoder(tiny_run())
        assert find_outliers(encoder, source, work).columns == usual.columns
        other = write_embeddings(encoder, source, tmp_path / "other.npy", work)
    assert other.read_bytes() == file.read_bytes()


@settings
def test_features_are_the_same_and_so_are_those_in_the_cache(
    setting: Callable[[], AbstractContextManager[object]], tmp_path: Path
) -> None:
    source, work = Counting(), cpu_work(tmp_path)
    vector = embed(random_encoder(tiny_run()), source, work).vector
    with setting():
        encoder = random_encoder(tiny_run())
        other, cached = embed(encoder, source, work).vector, features_of(encoder, source, work)
    assert other.dtype == torch.float32 and torch.equal(other, vector) and torch.equal(cached, vector)


@pytest.mark.parametrize("protocol", [KNN(k=3), LinearMoCo(epochs=1), FineTune(epochs=1)])
def test_a_protocol_measures_the_same(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    encoder = random_encoder(tiny_run())
    usual = evaluate(encoder, protocol, Counting(), work=cpu_work(tmp_path / "usual"))
    with all_settings():
        assert evaluate(encoder, protocol, Counting(), work=cpu_work(tmp_path / "other")) == usual


def test_the_callers_random_numbers_go_on_after_a_run(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    train(short_run(tmp_path), tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)
