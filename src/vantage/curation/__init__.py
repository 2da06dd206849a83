"""Find near-duplicates, outliers, representatives and wrong labels among images, by their features.

`neighbors`, `duplicates`, `outliers`, `representatives` and `mistakes` are functions of features; `search` and
`search_duplicates` apply them to the images of a source, and `findings` writes the results.
"""

from vantage.curation.findings import Findings, write_findings
from vantage.curation.search import find_mistakes, find_outliers, find_representatives
from vantage.curation.search_duplicates import find_duplicates, find_leaks

__all__ = [
    "Findings",
    "find_duplicates",
    "find_leaks",
    "find_mistakes",
    "find_outliers",
    "find_representatives",
    "write_findings",
]
