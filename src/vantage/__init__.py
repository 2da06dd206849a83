"""Vantage: contrastive learning of visual representations, from composable parts.

>>> import vantage
>>> run = vantage.moco_v2(size=64).fit(images=13_000)
>>> run.branches[0].memory
Queue(length=1300)

In a handful of calls, from images to features:

    source = vantage.open_source("photos")
    run = dataclasses.replace(vantage.moco_v2(size=64).fit(len(source)), data=vantage.Data("photos"))
    vantage.train(run, "runs/first")
    features = vantage.embed(vantage.load("runs/first"), source)

Every public name of the rooms below is a name of `vantage`. A room is imported when one of its names is first used, so
`vantage --help` does not wait for torch.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vantage.branch import *  # noqa: F403
    from vantage.composition import *  # noqa: F403
    from vantage.data import *  # noqa: F403
    from vantage.encoders import *  # noqa: F403
    from vantage.encoding import *  # noqa: F403
    from vantage.errors import *  # noqa: F403
    from vantage.estimators import *  # noqa: F403
    from vantage.frozen import *  # noqa: F403
    from vantage.frozen.scikit_learn import *  # noqa: F403
    from vantage.learner import *  # noqa: F403
    from vantage.memory import *  # noqa: F403
    from vantage.negatives import *  # noqa: F403
    from vantage.partition import *  # noqa: F403
    from vantage.planning import *  # noqa: F403
    from vantage.positives import *  # noqa: F403
    from vantage.recipes import *  # noqa: F403
    from vantage.records import *  # noqa: F403
    from vantage.schedules import *  # noqa: F403
    from vantage.training import *  # noqa: F403
    from vantage.views import *  # noqa: F403

__version__ = "0.2.0.dev0"

ROOMS = (
    "recipes",
    "errors",
    "composition",
    "records",
    "schedules",
    "data",
    "views",
    "encoders",
    "memory",
    "negatives",
    "estimators",
    "partition",
    "positives",
    "branch",
    "learner",
    "encoding",
    "training",
    "planning",
    "frozen",
)
"""The modules whose public names are names of `vantage`: the recipes, then the others from the lowest layer up."""

LATE = {"VantageEncoder": "frozen.scikit_learn"}
"""Further names, each with its module, which is imported only if the name is used: scikit-learn takes a second."""

_OF_VERBS = {
    "analyse": "studies.analyse",
    "analyze": "studies.analyse",
    "benefit": "studies.benefit.measure_benefit",
    "compare": "evaluate.compare.comparison.compare",
    "convert": "frozen.convert.convert",
    "demo": "train",
    "describe": "composition.printing.as_python",
    "export": "frozen.export.backbone.export",
    "find": "curation",
    "pretrain": "train",
    "reproduce": "studies.lab",
    "shots": "evaluate.protocols.svm.shots.read_shots",
}
"""What does in Python what a verb of the terminal does, also in another spelling, if `vantage` has no such name."""

_MODULES = frozenset(module.name for module in iter_modules(__path__))  # noqa: F405


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # `from vantage import draws`, or `vantage.functional` without an import of its own
        return import_module(f"vantage.{name}")
    if name == "__all__":  # for `from vantage import *`
        return _names()
    if name.startswith("_"):  # Python and its tools ask for many, which need no hint
        raise AttributeError(f"module 'vantage' has no attribute {name!r}")
    for room in [LATE[name]] if name in LATE else ROOMS:
        if name in (public := _public(room)):
            globals()[name] = public[name]
            return public[name]
    raise AttributeError(f"module 'vantage' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """The name that was probably meant: of `vantage`, or of a module that a script often needs as well."""
    if name in _OF_VERBS:
        return f"; did you mean vantage.{_OF_VERBS[name]}?"
    from vantage.composition.suggest import did_you_mean

    names = {f"vantage.{known}" for known in _names()}
    for room in ("curation", "evaluate", "functional"):
        names |= {f"vantage.{room}.{known}" for known in import_module(f"vantage.{room}").__all__}
    return did_you_mean(name, sorted(names), "; dir(vantage) lists its names")


@cache
def _public(room: str) -> dict[str, Any]:
    module = import_module(f"vantage.{room}")
    return {name: getattr(module, name) for name in module.__all__}


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted({*LATE, *(name for room in ROOMS for name in _public(room))}))


def __dir__() -> list[str]:
    return sorted({*_names(), *(name for name in globals() if name[0] == "_" or name in _MODULES)})
