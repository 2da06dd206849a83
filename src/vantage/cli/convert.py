"""The verb `convert`: write weights that torch pickled to a safetensors file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read

__all__ = ["convert"]


@dataclass(frozen=True)
class ConvertOptions:
    """The options of `convert`."""

    file: Annotated[str, Word("FILE", positional=True)]
    """File written by torch.save, such as resnet18.pth or moco_v2_800ep_pretrain.pth.tar."""

    out: Annotated[str, Word("OUT", positional=True)]
    """File to write, ending with .safetensors."""

    key: str = ""
    """Key of the state dict in the file; if omitted, state_dict, model, model_state_dict, or the file itself."""


def convert(words: list[str], console: Console) -> int:
    """Convert weights that torch saved to safetensors: vantage convert FILE.pth OUT.safetensors.

    Torch's weights-only loader reads the file: it refuses files that hold anything but tensors, and runs no code from
    them. For a MoCo checkpoint, the query network is written.
    """
    (options,) = read(Command("convert", convert.__doc__ or ""), words, ConvertOptions)
    from vantage.frozen.convert import convert as write

    result = write(Path(options.file), Path(options.out), options.key)
    without = f", without {result.prefix!r} before their names" if result.prefix else ""
    console.note(f"{len(result.names):,} tensors{without}")
    if result.left_out:
        console.note(f"{len(result.left_out):,} beside them are left out, such as {result.left_out[0]}")
    console.result(str(result.file))
    return 0
