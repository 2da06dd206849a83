"""One page about runs, for a browser: how training went, what the features know, and where it all came from.

Facts (`vantage.facts`, `image_facts`, `clusters`) are values; `drawing` and `pictures` draw them;
`layout`, `sprite` and `map_data` make the map; `page` puts them into the templates.
"""

from vantage.report.write import write_report

__all__ = ["write_report"]
