"""Clusters of a run's memory, for the images it was trained on and for others."""

import re
from pathlib import Path

import torch
from runs_with_metrics import finished_run
from small_runs import IMAGES, small_run, write_images
from tiny import cpu_work

from vantage.data import SourceSubset, open_source
from vantage.report import write_report
from vantage.report.clusters import clusters_of
from vantage.training.folder import checkpoint


def test_clusters_are_those_of_the_memory(tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    source = open_source(path)
    run = finished_run(tmp_path / "run", small_run("interclr", path), source)
    early = clusters_of(run, source)
    assert early is not None and early.label is None and "not been clustered yet" in early.problem
    newest = checkpoint.latest(run)
    assert newest is not None
    tensors, _ = checkpoint.load(newest)
    (name,) = (name for name in tensors if name.endswith(".label"))
    label = torch.arange(IMAGES) % 3 + (torch.arange(IMAGES) < 6)
    checkpoint.save(run, 8, {**tensors, name: label[:, None]}, {})
    clusters = clusters_of(run, source)
    assert clusters is not None and clusters.label is not None and clusters.label.tolist() == label.tolist()
    sizes = label.bincount()
    assert clusters.largest(2) == [
        (int(one), int(sizes[one])) for one in sizes.argsort(descending=True, stable=True)[:2]
    ]
    other = clusters_of(run, SourceSubset(source, range(IMAGES - 1)))
    assert other is not None and other.label is None and "--data names others" in other.problem
    write_report([run], source, tmp_path / "report.html", work=cpu_work(tmp_path))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (section,) = re.findall(r'<section id="clusters">(.*?)</section>', page, re.DOTALL)
    headings = [(int(one), int(size)) for one, size in re.findall(r"cluster (\d+)<br>(\d+) images", section)]
    assert headings == clusters.largest(8) and len(headings) == 4
    assert section.count('src="data:image/') == sum(min(8, size) for _, size in headings)
    assert '<option value="cluster">by cluster</option>' in page
    assert '<option value="folder">' not in page, "all images are in one folder"


def test_a_run_without_clusters_has_none(tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    source = open_source(path)
    assert clusters_of(finished_run(tmp_path / "run", small_run("moco_v2", path), source), source) is None
