"""`vantage demo` with few patches, a small network and one epoch, for `--import short_demo`."""

from dataclasses import replace

from vantage.cli.demo import demonstration as demo
from vantage.data import Photographs, SourceSubset
from vantage.encoders import Convolutions, Encoder, LinearHead, Shared
from vantage.training.run import Data, Hardware, Run

PATCHES = 64


def short_plan(*measures: object) -> Run:
    """Stands in for the plan for this machine."""
    run = demo.demo_recipe().fit(PATCHES, 16).rescale(16, 1)
    return replace(
        run,
        encoders=Shared(Encoder(Convolutions((4, 8)), LinearHead(8))),
        data=Data("photographs:train", max_images=PATCHES),
        hardware=Hardware("cpu", precision="32-true"),
    )


def few_patches(split: str = "train") -> SourceSubset:
    """Some patches of every photograph."""
    photographs = Photographs(split)  # pyright: ignore[reportArgumentType]
    return SourceSubset(photographs, range(0, len(photographs), len(photographs) // PATCHES))


setattr(demo, "plan_demo", short_plan)  # noqa: B010
setattr(demo, "Photographs", few_patches)  # noqa: B010
