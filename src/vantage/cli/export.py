"""The verb `export`: write the backbone of a run for another library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import NetworkOptions, RunOrWeights
from vantage.cli.reading.out_files import check_file, check_folder

__all__ = ["export"]


@dataclass(frozen=True)
class ExportOptions:
    """The options of `export`."""

    to: Literal["torchvision", "timm", "safetensors", "detectron2", "onnx", "torch"]
    """Library whose own model loads the file (torchvision, timm or detectron2): for ResNets, and timm's networks in
    timm. For any network: safetensors keeps the parameters' own names; onnx and torch (torch.export) write the network
    itself, from pixels to features."""

    out: Annotated[str, Word("FILE")] = ""
    """File to write, ending with .safetensors, .onnx or .pt2; if omitted, RUN/backbone-FORMAT with that ending. For
    detectron2, a folder for the weights and settings of detectors; if omitted, RUN/detectron2."""

    data: Annotated[str, Word("PATH")] = ""
    """Images for checking an export to onnx or torch; if omitted, those of the run, or random ones if they are
    gone."""


def export(words: list[str], console: Console) -> int:
    """Write the backbone for another library: vantage export RUN --to torchvision [--out FILE].

    A model card in Markdown is written beside it: images, method, settings, results and origin.
    """
    command = Command("export", export.__doc__ or "")
    run, options, network = read(command, words, RunOrWeights, ExportOptions, NetworkOptions)
    from vantage.data import open_source
    from vantage.frozen.export.backbone import ENDINGS
    from vantage.frozen.export.backbone import export as write

    which = "" if network.network is None else f"-{network.network}"
    name = f"{'detectron2' if options.to == 'detectron2' else f'backbone-{options.to}'}{which}{ENDINGS[options.to]}"
    out = Path(options.out or run.home / name)
    (check_folder if options.to == "detectron2" else check_file)(out)
    source = open_source(options.data) if options.data else None
    result = write(run.folder, options.to, out, network.network, source)
    if result.check:
        console.note(result.check.sentence())
    console.note(f"wrote {result.file}; {result.card.name} beside it describes it. To use it:\n")
    console.result(result.how)
    return 0
