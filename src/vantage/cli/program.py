"""The verbs, and how a call ends: 0, or 2 for a mistake of the user, 130 when interrupted, 1 for a bug of ours."""

import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence

from vantage.cli.analyse import analyse
from vantage.cli.compare import compare
from vantage.cli.console import Console
from vantage.cli.demo import demo
from vantage.cli.embed import embed
from vantage.cli.evaluate import evaluate
from vantage.cli.export import export
from vantage.cli.pretrain import pretrain
from vantage.cli.recipes import recipes
from vantage.cli.reproduce import reproduce
from vantage.cli.resume import resume
from vantage.cli.shots import shots
from vantage.cli.views import views
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["VERBS", "main"]

VERBS: tuple[Callable[[list[str], Console], int], ...] = (
    recipes,
    pretrain,
    resume,
    embed,
    evaluate,
    compare,
    shots,
    analyse,
    views,
    reproduce,
    export,
    demo,
)
"""What can be asked for; each docstring begins with its help, up to a colon."""

_HELP = """\
usage: vantage VERB …    (vantage VERB --help tells more)

Contrastive learning of visual representations: from a folder of images to a backbone.

{verbs}

everywhere:
  --quiet          no notes and no progress; results and mistakes only
  --import MODULE  allow parts and recipes of your own module
  --version        tell the version

for example:
  vantage pretrain moco_v2 --data photos --out runs/photos
  vantage evaluate knn runs/photos --data photos
  vantage export runs/photos --to torchvision --out backbone.safetensors
"""


def main(words: Sequence[str] | None = None) -> int:
    """Do what the words ask for, by default those of the process; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):  # a terminal without Greek letters shows a ? for them
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        return _run(list(sys.argv[1:] if words is None else words))
    except SystemExit as end:  # after help
        return end.code if isinstance(end.code, int) else 0
    except UserError as mistake:
        print(f"vantage: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vantage: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception:
        traceback.print_exc()
        print("vantage: this is a bug; please report it with the lines above", file=sys.stderr)
        return 1


def _run(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        print(_HELP.format(verbs="\n".join(_verb_lines())))
        return 0 if words else 2
    if words[0] == "--version":
        from vantage import __version__

        print(f"vantage {__version__}")
        return 0
    words, console = _global(words)
    named = {verb.__name__: verb for verb in VERBS}
    if not words or words[0] not in named:
        hint = did_you_mean(words[0] if words else "", named)
        found = f"there is no verb {words[0]!r}{hint}" if words else "no verb is given"
        raise UserError(f"{found} (verbs: {', '.join(named)})")
    _import(console.imports)
    if not console.imports:
        return named[words[0]](words[1:], console)
    from vantage.composition.codec import allowing

    with allowing(*console.imports):
        return named[words[0]](words[1:], console)


def _verb_lines() -> Iterator[str]:
    for verb in VERBS:
        text = (verb.__doc__ or "").partition(":")[0]
        yield f"  {verb.__name__:<10}{text}"


def _global(words: list[str]) -> tuple[list[str], Console]:
    """The words less those that hold for every verb."""
    rest, imports, quiet = [], [], False
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if word == "--quiet":
            quiet = True
        elif name == "--import":
            module = value if equals else next(waiting, "")
            if not module or module.startswith("-"):
                raise UserError("--import needs the name of a module, such as my_parts")
            imports.append(module)
        else:
            rest.append(word)
    return rest, Console(quiet, tuple(imports))


def _import(modules: Sequence[str]) -> None:
    """Import the modules that the user named; the current folder comes first, as for a script that lies there."""
    if modules and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as problem:
            if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
                raise
            raise UserError(f"--import {module}: there is no such module here or among the installed ones") from None
