"""Losses and views in two versions of the code, on one core: is anything slower than before?

    git worktree add BEFORE COMMIT; python benchmarks/versions.py BEFORE [--rounds 15]

Each version has a process with the cases of its own benchmarks. The two processes run one case at a time, in turn, and
the CPU time of the call counts. A busy machine makes that longer, never shorter, so both the ratio of the
fastest calls and the median of the ratios of successive calls are given: 1.05 is 5 % more time than before.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

    from vantage.encoders import Backbone

HERE = Path(__file__).resolve()


def cases() -> dict[str, Callable[[], object]]:
    """The cases of this version, by name."""
    import interclr
    import losses
    import methods
    import torch
    import views

    from vantage.encoders import ResNet9
    from vantage.partition import sum_table
    from vantage.views import multi_crop_views, simclr_views

    size = interclr.Size(131_072, 64, 1)
    cases: dict[str, Callable[[], object]] = {"InfoNCE, queue of 65,536": losses.ours(65_536)}
    cases["InfoNCE by a table, 16,384"] = losses.ours(16_384, sum_table)
    for name in ("ring band", "ring table", "jcl"):
        cases[f"{name}, queue of 16,384"] = methods.CASES[name][2](16_384)
    cases["jcl, positives alone"] = methods.jcl_positives(0)
    for name in ("exact", "subset", "mates: index", "centroids: sums, index"):
        cases[f"InterCLR {name}"] = interclr.CASES[name][1](size)
    for side in (32, 224):
        for name, maker in views.recipes(side).items():
            cases[f"{name}, {side} pixels"] = views.cases(name, maker, side)["vantage"].run
    for side, size in ((32, 32), (64, 64), (128, 32), (128, 16)):
        images = torch.stack([torch.from_numpy(image).permute(2, 0, 1) for image in views.pieces(256, side, side)])
        maker = multi_crop_views(simclr_views(size, strength=0.5), 2, 16, (0.1, 0.4))
        cases[f"a plan's views, {side} to {size} pixels"] = views.ours(maker, [], images.contiguous())
    cases["ResNet-9, 32 pixels, float32"] = network_pass(ResNet9(16, features=256), torch.float32)
    cases["ResNet-9, 32 pixels, bfloat16"] = network_pass(ResNet9(16, features=256), torch.bfloat16)
    return cases


def network_pass(backbone: "Backbone", precision: "torch.dtype") -> Callable[[], object]:
    """Forward and backward pass of 512 images: two views of a batch of 256."""
    import torch

    network = backbone.build().to(memory_format=torch.channels_last)
    images = torch.randn(512, 3, 32, 32).to(memory_format=torch.channels_last)

    def run() -> None:
        with torch.autocast("cpu", precision, enabled=precision != torch.float32):
            vectors = network(images)
        vectors.float().square().mean().backward()

    return run


def serve() -> None:
    """Print the names of the cases, then run each case that is requested and print its seconds."""
    import torch

    from vantage.machine.allocator import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as the command line does
    all_cases = cases()
    print("\t".join(all_cases), flush=True)
    for line in sys.stdin:
        case, calls = all_cases[line.rstrip("\n")], 0
        start = time.process_time()
        while calls == 0 or time.process_time() - start < 0.1:
            case()
            calls += 1
        print((time.process_time() - start) / calls, flush=True)


class Version(NamedTuple):
    """A process that times the cases of one version."""

    process: subprocess.Popen[str]
    names: list[str]

    @classmethod
    def of(cls, tree: Path) -> "Version":
        """The version in a work tree."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{tree / 'src'}:{tree / 'benchmarks'}"}
        command = [sys.executable, "-P", str(HERE), "--serve", "."]
        process = subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, text=True)
        return cls(process, cls._answer(process).split("\t"))

    @staticmethod
    def _answer(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().rstrip("\n")

    def seconds(self, name: str) -> float:
        """Seconds of one call."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return float(self._answer(self.process))


def main() -> None:
    """Time all cases in turn, and write the results file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a work tree of the version before")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", help="names of cases; the rows of others are left as they are")
    parser.add_argument("--results", default="versions", help="name of the results file")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    from timing import RESULTS, write_results

    commit = subprocess.run(["git", "-C", options.before, "rev-parse", "HEAD"], capture_output=True, text=True)
    before, after = Version.of(options.before.resolve()), Version.of(HERE.parent.parent)
    file, names = RESULTS / f"{options.results}.json", options.only or after.names
    earlier = json.loads(file.read_text())["rows"] if options.only and file.exists() else []
    rows: list[dict[str, Any]] = [row for row in earlier if row["case"] not in names]
    for name in names:
        pairs = [(before.seconds(name), after.seconds(name)) for _ in range(options.rounds + 1)][1:]
        fastest = [min(times) * 1e3 for times in zip(*pairs, strict=True)]
        row = {"case": name, "before": commit.stdout.strip(), "before_ms": fastest[0], "after_ms": fastest[1]}
        ratios = {"ratio": fastest[1] / fastest[0], "median_ratio": statistics.median(new / old for old, new in pairs)}
        rows.append(row | ratios)
        print(
            f"{name:34} {fastest[0]:8.2f} {fastest[1]:8.2f} ms",
            *(f"{value:.3f}" for value in ratios.values()),
            flush=True,
        )
        write_results(options.results, rows)
    for version in (before, after):
        version.process.communicate()


if __name__ == "__main__":
    main()
