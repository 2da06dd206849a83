"""The files of a stranger's run folder, results and weights: for each a good file, a way to damage it,
and everything that the verbs read from it."""

import functools
import io
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mutations
import torch
from fuzz_targets import Target, of_file, sealing
from good_files import tar
from small_runs import small_run, write_images
from tar_shards import png
from tiny import ALLOW, TinyBackbone, images, saved_run, tiny_run
from torch import nn

from vantage.cli.evaluate.protocols import protocol_named
from vantage.cli.evaluate.tasks import class_names
from vantage.composition.codec import allowing, encode
from vantage.data import open_source
from vantage.data.resident import decode_all
from vantage.data.scan import scan
from vantage.encoding import Work
from vantage.evaluate import KNN, evaluate
from vantage.evaluate.protocols.finetune.finetune import images_named_in
from vantage.evaluate.protocols.svm.shots import read_shots
from vantage.evaluate.result import find_outcome
from vantage.facts.results import recorded_results
from vantage.facts.run_facts import facts_of
from vantage.frozen.convert import convert
from vantage.frozen.encoder import load
from vantage.frozen.networks import trained_networks
from vantage.progress import QuietProgress
from vantage.report.curves import curves
from vantage.storage.provenance import provenance
from vantage.storage.results import CachedResults
from vantage.storage.state import StateFile, restore, tensors_of
from vantage.studies.sweep.rows import SweepRow, stored_rows
from vantage.studies.view_learning.presets import unsupervised
from vantage.studies.view_learning.record import FILE, read_learning
from vantage.training.computing.launch import launch
from vantage.training.folder.same_run import check_same_run
from vantage.training.folder.settings import read as read_settings
from vantage.training.session import Session, check_belongs
from vantage.training.start.warm_start import read_start, recorded_start

__all__ = ["of_runs"]


def of_runs(folder: Path) -> dict[str, Target]:
    """The targets; writes the files that they need to `folder`."""
    return _a_run(folder / "run") | _a_checkpoint(folder) | _results(folder) | _elsewhere(folder) | _kept_rows(folder)


def _a_run(run: Path) -> dict[str, Target]:
    saved_run(run, tiny_run())
    with allowing(*ALLOW):
        whole = read_settings(run)
    row = {"epoch": 1, "step": 4, "loss": 2.5, "accuracy": 0.5, "alignment": 0.5, "uniformity": -2.0, "deviation": 0.9}
    rows = [{**row, "epoch": n, "step": 4 * n, "rank": 6.0, "learning_rate": 0.1, "warning": "w"} for n in (1, 2, 3, 4)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (run / "provenance.json").write_text(json.dumps([provenance("a" * 32, 64), provenance("a" * 32, 64)]))

    def open_run(file: Path, cache: Path) -> None:
        with allowing(*ALLOW):
            (facts,) = facts_of([run])
            _ = facts.verdict, facts.settings(), facts.origins()
            if file.name == "metrics.jsonl":
                curves([facts])
                return
            trained_networks(run)
            read_start(run)
            recorded_start(run)
            if file.name == "settings.json":
                facts.all_settings()
                load(run)
            settings = read_settings(run) if file.name == "settings.json" else whole
            check_same_run(settings, run, {"fingerprint": "a" * 32, "images": 64})

    return {
        f"run's {name}": Target(f"run/{name}", (run / name).read_bytes(), damage, open_run)
        for name, damage in (
            ("settings.json", mutations.damage_tree),
            ("metrics.jsonl", mutations.damage_lines),
            ("provenance.json", mutations.damage_tree),
        )
    }


def _a_checkpoint(folder: Path) -> dict[str, Target]:
    run, path = small_run("moco_v2", write_images(folder / "small.npz")), folder / "trained"
    path.mkdir()

    @functools.cache
    def session() -> Session:
        fabric, ours = launch(run, QuietProgress())
        return Session(ours, fabric, open_source(folder / "small.npz", cache=folder / "cache"))

    own = session()
    own.step(next(own.feed.batches(0, 0)).to(own.fabric.device), 0)
    own.save(path, 1, 0.5)
    step = path / "checkpoint" / "step-000000001"

    def load_checkpoint() -> None:
        check_belongs(step, run, 48)
        session().restore(step)

    read = sealing(step, load_checkpoint)
    return {
        "checkpoint facts": of_file(step / "facts.json", folder, mutations.damage_tree, read),
        "checkpoint tensors": of_file(step / "tensors.safetensors", folder, mutations.damage_header, read),
    }


def _results(folder: Path) -> dict[str, Target]:
    run = folder / "judged"
    (run / "evaluations").mkdir(parents=True)
    saved_run(run, tiny_run())
    with allowing(*ALLOW):
        encoder = load(run)
    work = Work("cpu", num_workers=1, cache=folder / "cache")
    result = evaluate(encoder, KNN(k=2), images(12, 0), images(6, 1), work=work)
    record = json.loads(json.dumps(asdict(result)))
    shots = {**record, "protocol": "lowshot", "settings": {"shots": [1, 2], "samples": 2}}
    for outcome in shots["outcomes"].values():
        outcome["details"] = {"shots": {"1": [10.0, 12.0], "2": [20.0, 21.5]}}

    def read_result(file: Path, cache: Path) -> None:
        recorded_results(run)
        find_outcome([file], "random encoder", result)
        protocol_named(str(file), labeled_only=True)

    def table(file: Path, cache: Path) -> None:
        shots = read_shots([file])
        shots.lines()
        shots.figure()

    return {
        "result": Target("judged/evaluations/r.json", json.dumps(record).encode(), mutations.damage_tree, read_result),
        "shots": Target("shots.json", json.dumps(shots).encode(), mutations.damage_tree, table),
    }


def _elsewhere(folder: Path) -> dict[str, Target]:
    state = {"state_dict": {"module.encoder_q.a.weight": torch.ones(2, 3), "queue": torch.zeros(4)}, "epoch": 3}
    pickle_file, legacy = io.BytesIO(), io.BytesIO()
    torch.save(state, pickle_file)
    torch.save(state, legacy, _use_new_zipfile_serialization=False)
    (folder / "learning").mkdir()
    learning = {"schema": 1, "learning": encode(unsupervised(8, (TinyBackbone(), TinyBackbone())))}
    source = images(12, 0)

    def convert_file(file: Path, cache: Path) -> None:
        (folder / "w.safetensors").unlink(missing_ok=True)
        convert(file, folder / "w.safetensors")

    def read_view_learning(file: Path, cache: Path) -> None:
        with allowing(*ALLOW):
            read_learning(folder / "learning")

    def read_names(file: Path, cache: Path) -> None:
        class_names(str(file))
        images_named_in(source, file)

    return {
        "pickled weights": Target("w.pth", pickle_file.getvalue(), mutations.damage_bytes, convert_file),
        "old pickled weights": Target("o.pth", legacy.getvalue(), mutations.damage_bytes, convert_file),
        "view learning": Target(
            f"learning/{FILE}", json.dumps(learning).encode(), mutations.damage_tree, read_view_learning
        ),
        "names": Target("names.txt", b"row 1\nrow 3\n", mutations.damage_words, read_names),
    }


def _kept_rows(folder: Path) -> dict[str, Target]:
    """Interrupted work and caches. Damaged ones are computed again, with the same outcome."""
    network = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)
    network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    StateFile(folder / "state.safetensors").write(tensors_of({"network": network}, optimizer), {"epoch": 2})
    CachedResults(folder / "results.json").add("a", {"b": [1.0]})
    about = {"sweep": "s", "values": [1, 2], "information": {}, "protocols": [["knn", 1, {}]]}
    rows = stored_rows(folder / "sweep", about)
    rows.add("k", SweepRow("c" * 16, "moco_v2", "1", 1.0, 0, {"knn": 50.0}, 2.0, 0.1, ({"bound": 3.0},), 3.0, 1.0, 9.0))

    def go_on(file: Path, cache: Path) -> None:
        if (state := StateFile(file).read()) is not None:
            restore({"network": network}, optimizer, state.tensors)

    def results(file: Path, cache: Path) -> None:
        results = CachedResults(file)
        if "a" in results:
            _ = results["a"]

    def sweep(file: Path, cache: Path) -> None:
        again = stored_rows(file.parent, about)
        _ = [again[key] for key in again]

    return {
        "kept state": of_file(folder / "state.safetensors", folder, mutations.damage_header, go_on),
        "cached results": of_file(folder / "results.json", folder, mutations.damage_bytes, results),
        "sweep's rows": of_file(folder / "sweep" / "sweep.json", folder, mutations.damage_tree, sweep),
        **_caches(folder / "cached"),
    }


def _caches(folder: Path) -> dict[str, Target]:
    """The files that opening and scanning images leave in the cache. Images are opened again with a damaged cache."""
    cache = folder / "cache"
    (folder / "photos" / "a").mkdir(parents=True)
    for number in range(2):
        (folder / "photos" / "a" / f"{number}.png").write_bytes(png(number))
    (folder / "photos" / "a" / "2.png").write_bytes(b"no image")
    for folder_above in (folder / "photos" / "a", folder / "photos"):  # changed long ago, so that listings are trusted
        os.utime(folder_above, (10**9, 10**9))
    (folder / "a.tar").write_bytes(tar())

    def read_cache(file: Path, _: Path) -> None:
        content = file.read_bytes()
        photos = open_source(folder / "photos", cache=cache)
        whole, parts = open_source(folder / "a.tar", cache=cache), open_source(f"{folder}/{{a.tar,a.tar}}", cache=cache)
        for source in (photos, whole, parts):
            names = [source.name(number) for number in range(len(source))]
            labels = [source.label(number) for number in range(len(source))]
            if file.suffix == ".npy":
                continue  # no hash protects these files, so damage may change names and pixels
            if before.setdefault(type(source).__name__, (names, labels)) != (names, labels):
                raise AssertionError(f"{names}, {labels}")
        bad = [each.number for each in scan(photos, 1, cache).bad]
        decode_all(whole, 8, 1, cache)
        if before.setdefault("scan", bad) != bad:
            raise AssertionError(f"{bad}")
        file.write_bytes(content)  # so that the damage does not spread to other files

    before: dict[str, Any] = {}
    (folder / "f").write_bytes(b"")
    read_cache(folder / "f", cache)
    damage = {".json": mutations.damage_bytes, ".npy": mutations.damage_array}
    files = sorted(file for file in cache.rglob("*") if file.suffix in damage)
    kinds = [f"cached {file.parent.name}{' set' * file.name.startswith('set-')} {file.suffix[1:]}" for file in files]
    return {
        kind: of_file(file, folder.parent, damage[file.suffix], read_cache)
        for kind, file in zip(kinds, files, strict=True)
    }
