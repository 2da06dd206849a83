"""The verb `views`: what a recipe makes of images, views that are learned, and what to normalize with."""

from vantage.cli.arguments import wants_help
from vantage.cli.console import Console, paragraphs
from vantage.cli.views.learn import learn
from vantage.cli.views.show import show
from vantage.cli.views.statistics import statistics
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["views"]


def views(words: list[str], console: Console) -> int:
    """A picture of images and the views that a recipe makes of them: vantage views show RECIPE --data PATH.

    Any field of the views may be set, to see what it does. Views are learned by: vantage views learn METHOD --data PATH
    --out FOLDER. What to normalize with is measured by: vantage views statistics [RECIPE] --data PATH.
    """
    verbs = {"show": show, "learn": learn, "statistics": statistics}
    if words and words[0] in verbs:
        return verbs[words[0]](words[1:], console)
    if wants_help(words):
        console.result(paragraphs(views.__doc__))
        console.result("\nvantage views show --help, learn --help and statistics --help list the options of each.")
        return 0
    if not words or words[0].startswith("-"):
        raise UserError("views needs show, learn or statistics, such as: vantage views show RECIPE --data PATH")
    raise UserError(f"views cannot {words[0]!r}{did_you_mean(words[0], verbs)} (it can: {', '.join(verbs)})")
