"""A session of a small run, ready for its first step."""

from vantage.progress import QuietProgress
from vantage.training.computing.launch import launch
from vantage.training.images import open_images
from vantage.training.run import Run
from vantage.training.session import Session
from vantage.training.start.first_rows import begin


def session(run: Run) -> Session:
    """The run's session, with the first rows of its banks."""
    fabric, run = launch(run, QuietProgress())
    one_session = Session(run, fabric, open_images(run.data)[0])
    begin(one_session.learner, run, one_session.source, QuietProgress())
    return one_session
