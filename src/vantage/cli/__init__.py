"""The command line: `vantage VERB …`. `program` lists the verbs, each a file or folder of its name; `reading`
reads their options, `printing` shows results."""

from vantage.cli.program import main

__all__ = ["main"]
