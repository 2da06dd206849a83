"""A report about runs, as one page for a browser: training curves, what the features show, and settings.

Values come from `vantage.facts`, `image_facts` and `clusters`; `drawing` and `pictures` draw them;
`layout`, `sprite` and `map_data` make the map; `page` puts everything into the templates.
"""

from vantage.report.write import write_report

__all__ = ["write_report"]
