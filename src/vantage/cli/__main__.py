"""`python -m vantage.cli` runs `vantage`."""

import sys

from vantage.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
