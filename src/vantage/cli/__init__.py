"""The command line: `vantage VERB …`. Its words are in `program`; what reads them is in `arguments`."""

from vantage.cli.program import main

__all__ = ["main"]
