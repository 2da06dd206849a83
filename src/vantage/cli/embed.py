"""The verb `embed`: write the features of images to a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import ImageOptions, NetworkOptions, RunOrWeights, WorkOptions
from vantage.cli.reading.out_files import check_file, check_folder
from vantage.errors import quantity

__all__ = ["embed"]


@dataclass(frozen=True)
class EmbedOptions:
    """The options of `embed`."""

    out: Annotated[str, Word("FILE")]
    """File to write: .parquet (name, label, embedding) or .npy (with the row names in a second file). A path without an
    ending becomes a folder of .parquet files with 100,000 images each, for very large sets."""

    batch_size: int = 256
    """Images that the network encodes at once."""


def embed(words: list[str], console: Console) -> int:
    """Write the features of images to a file: vantage embed RUN --data PATH --out FILE."""
    command = Command("embed", embed.__doc__ or "")
    groups = (RunOrWeights, ImageOptions, EmbedOptions, NetworkOptions, WorkOptions)
    run, images, options, network, computing = read(command, words, *groups)
    from vantage.frozen import embedding, embedding_parts
    from vantage.frozen.encoder import load

    encoder = load(run.folder, network.network)
    out = Path(options.out)
    if out.suffix:  # report a mistake before a million images are read
        embedding.check_file(out)
        check_file(out)
    else:
        embedding_parts.check_folder(out)
        check_folder(out)
    work = computing.work(console, options.batch_size)
    source = computing.open(images.data, console)
    write = embedding.write_embeddings if out.suffix else embedding_parts.write_embedding_parts
    file = write(encoder, source, out, work)
    console.note(f"{quantity(len(source), 'image')} × {encoder.width:,} numbers")
    console.result(str(file))
    return 0
