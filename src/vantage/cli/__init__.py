"""The command line: `vantage VERB …`. `program` lists the verbs; `arguments` reads their options."""

from vantage.cli.program import main

__all__ = ["main"]
