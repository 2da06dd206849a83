"""The verb `views`: show views, learn views, and measure statistics for normalization."""

from vantage.cli.printing.console import Console, overview
from vantage.cli.reading.arguments import wants_help
from vantage.cli.views.learn import learn
from vantage.cli.views.show import show
from vantage.cli.views.statistics import statistics
from vantage.composition.suggest import no_such
from vantage.errors import UserError

__all__ = ["views"]


def views(words: list[str], console: Console) -> int:
    """Show the views that a recipe makes of images, or learn views: vantage views show RECIPE --data PATH.

    --set changes any field of the views, so that you can see its effect. vantage views learn METHOD --data PATH --out
    FOLDER learns views. vantage views statistics [RECIPE] --data PATH measures the mean and standard deviation for
    normalization.
    """
    verbs = {"show": show, "learn": learn, "statistics": statistics}
    if words and words[0] in verbs:
        return verbs[words[0]](words[1:], console)
    if wants_help(words):
        console.result(overview("views show|learn|statistics [--option value …]", views.__doc__))
        console.result("\nvantage views show --help shows its options; likewise for learn and statistics.")
        return 0
    if not words or words[0].startswith("-"):
        raise UserError("views needs show, learn or statistics, such as: vantage views show RECIPE --data PATH")
    raise no_such("verb", f"views {words[0]}", [f"views {name}" for name in verbs])
