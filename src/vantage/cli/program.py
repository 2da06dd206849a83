"""The verbs, and the exit status: 0 for success, 2 for a user's mistake, 130 if interrupted by Ctrl-C or SIGTERM, 1 for
a bug."""

import atexit
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vantage.cli.analyse import analyse
from vantage.cli.benefit import benefit
from vantage.cli.cache import cache
from vantage.cli.compare import compare
from vantage.cli.convert import convert
from vantage.cli.demo import demo
from vantage.cli.embed import embed
from vantage.cli.evaluate import evaluate
from vantage.cli.export import export
from vantage.cli.find import find
from vantage.cli.pretrain import pretrain
from vantage.cli.printing.console import INTERRUPTED, Console
from vantage.cli.printing.failures import message_for
from vantage.cli.printing.streams import discard, usable_streams
from vantage.cli.reading.launch import does_the_work
from vantage.cli.recipes import recipes
from vantage.cli.report import report
from vantage.cli.reproduce import reproduce
from vantage.cli.resume import resume
from vantage.cli.shots import shots
from vantage.cli.views import views
from vantage.composition.codec import allowing
from vantage.composition.suggest import did_you_mean, no_such
from vantage.errors import UnreadableImage, UserError, with_place
from vantage.machine.allocator import keep_freed_memory
from vantage.machine.launchers import describe_as_torchrun
from vantage.machine.openmp import sleep_soon
from vantage.machine.termination import interrupted_by_sigterm

__all__ = ["VERBS", "main"]

VERBS: tuple[Callable[[list[str], Console], int], ...] = (
    recipes,
    pretrain,
    resume,
    embed,
    find,
    report,
    evaluate,
    compare,
    benefit,
    shots,
    analyse,
    views,
    reproduce,
    export,
    convert,
    cache,
    demo,
)
"""All verbs; the help of each is its docstring up to the first colon."""

_SHARED = (pretrain, resume, embed, evaluate)
"""Verbs whose work is shared by the processes that a launcher starts. For the others, the first process does it."""

_HELP = """\
usage: vantage VERB …    (vantage VERB --help shows its options)

Contrastive learning of visual representations: from images to a backbone.

{verbs}

with every verb:
  --quiet          print results and errors only, no notes and no progress
  --import MODULE  allow parts and recipes from your own module

vantage --version prints the version.

examples:
  vantage pretrain --data photos --minutes 30 --out runs/photos
  vantage evaluate knn runs/photos --data labeled
  vantage export runs/photos --to safetensors --out backbone.safetensors
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command in `words` (if omitted, the command line of the process); returns the exit status."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # else Python searches torch's objects for cycles at its end: a second of a free core
    with usable_streams(), interrupted_by_sigterm():
        return _status_of(list(sys.argv[1:] if words is None else words))


def _status_of(words: list[str]) -> int:
    try:
        describe_as_torchrun()
        status = _run(words)
        sys.stdout.flush()  # report a failed write here, before the process ends and drops it
        return status
    except SystemExit as end:  # after help
        return end.code if isinstance(end.code, int) else 0
    except UserError as mistake:
        if isinstance(mistake, UnreadableImage):
            _try_all_again(mistake)
        _print_error(str(mistake), mistake)
        return 2
    except KeyboardInterrupt as interruption:
        _print_error("interrupted", interruption)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed the pipe
        discard(sys.stdout)
        return 141
    except Exception as problem:
        if message := message_for(problem):
            _print_error(message, problem)
            return 2
        traceback.print_exc()
        whose = _raised_by_own_module(problem, words) or "this is a bug; please report it with the lines above"
        print(f"vantage: {whose}", file=sys.stderr)
        return 1


def _print_error(message: str, error: BaseException) -> None:
    """Print the message, and what was noted on the error on its way here."""
    for line in (message, *getattr(error, "__notes__", ())):
        print(f"vantage: {line}", file=sys.stderr)


def _try_all_again(mistake: UnreadableImage) -> None:
    """An image was damaged or removed after all were tried: let the next command find out."""
    from vantage.data.scan import forget_scans

    if forget_scans():
        mistake.add_note("it could be read before: repair it; or run the same again, which tries all images anew")


def _raised_by_own_module(problem: Exception, words: list[str]) -> str:
    """Where a module that --import names took part in an error, in words; empty if none did."""
    files = {getattr(sys.modules.get(module), "__file__", None) for module in _global(words)[1].imports}
    own = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename in files]
    return f"the lines above end in {own[-1].filename}, line {own[-1].lineno}, which --import named" if own else ""


def _run(words: list[str]) -> int:
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("--help", "-h", "help"):
        print(_HELP.format(verbs="\n".join(_verb_lines())))
        return 0 if words else 2
    if words[0] == "--version":
        from vantage import __version__

        print(f"vantage {__version__}")
        return 0
    words, console = _global(words)
    verbs = {verb.__name__: verb for verb in VERBS}
    if not words:
        raise UserError(f"no verb is given (verbs: {', '.join(verbs)})")
    if words[0] not in verbs:
        raise no_such("verb", words[0], verbs)
    if verbs[words[0]] not in _SHARED and not does_the_work(words[0], console):
        return 0
    sleep_soon()
    keep_freed_memory()
    _import(console.imports)
    with allowing(*console.imports):
        return verbs[words[0]](words[1:], console)


def _verb_lines() -> Iterator[str]:
    for verb in VERBS:
        text = (verb.__doc__ or "").partition(":")[0]
        yield f"  {verb.__name__:<10}{text}"


def _global(words: list[str]) -> tuple[list[str], Console]:
    """The words without the flags that every verb accepts, and a console set up by those flags."""
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
    """Import the modules that the user names, from the current folder first, as for a script in it."""
    if modules and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for module in modules:
        if os.sep in module:
            raise _is_a_path(module)
        if module.startswith("."):  # relative to no package
            raise _no_module(module)
        try:
            importlib.import_module(module)
        except Exception as problem:  # a user's module may raise anything
            name = problem.name if isinstance(problem, ModuleNotFoundError) else None
            if name is None or not f"{module}.".startswith(f"{name}."):
                raise UserError(f"--import {module}: {with_place(problem)}") from problem
            raise _no_module(module) from None


def _is_a_path(module: str) -> UserError:
    """The error for a path in the place of a module's name."""
    folder, _, file = module.rpartition(os.sep)
    place = "" if folder == "." else f" in the folder {folder}, or PYTHONPATH={folder} before the command"
    return UserError(f"--import {module} is a path: give a module's name: --import {file.removesuffix('.py')}{place}")


def _no_module(module: str) -> UserError:
    """The error for a module that does not exist, with the file of this folder that was probably meant."""
    files, name = [file.stem for file in Path().glob("*.py")], module.removesuffix(".py")
    hint = f"; write it without .py: --import {name}" if name in files else did_you_mean(module, files)
    return UserError(f"--import {module}: no module of this name is in this folder or installed{hint}")
