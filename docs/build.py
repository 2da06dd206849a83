"""The documentation, with search: the pages that people wrote, and a page for each package made of its docstrings.

    python docs/build.py [--out FOLDER]

Needs no network. It ends with exit status 1 and a list when a public name has no docstring or is on no page, and when
Sphinx has anything to warn of. Public is what has no leading underscore, down to methods and fields of dataclasses.
"""

import argparse
import importlib
import inspect
import io
import shutil
import sys
import tempfile
import types
import zlib
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.console import nocolor

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "docs"))

from public_names import defined_names, own_names, undocumented  # noqa: E402

SOURCE = REPOSITORY / "src"
PACKAGE = "vantage"
COPIED = (
    "*.md",
    "LICENSE",
    "CITATION.cff",
    "docs/**/*",
    "examples/*.py",
    "benchmarks/*.md",
    "benchmarks/results/*.png",
)
START = (
    "docs/own_photos",
    "docs/report",
    "docs/using_features",
    "docs/comparing",
    "docs/reproducing",
    "docs/inventing",
    "docs/many_machines",
    "docs/scale",
    "docs/weights_from_elsewhere",
    "docs/taking_it_elsewhere",
)
EXTEND = ("CONTRIBUTING", "docs/extend/*")
UNDERSTAND = ("docs/architecture", "docs/decisions", "docs/glossary", "docs/identities", "docs/traps")
RECORD = ("docs/claims", "benchmarks/README", "CHANGELOG", "docs/security", "SECURITY")


def public_modules(source: Path = SOURCE) -> list[str]:
    """Dotted names of the package's modules, private ones left out."""
    names = []
    for file in sorted((source / PACKAGE).rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            names.append(".".join(parts))
    return names


def prepare(folder: Path) -> None:
    """Put everything that Sphinx reads into `folder`, laid out as in the repository so that links hold."""
    for pattern in COPIED:
        for file in sorted(REPOSITORY.glob(pattern)):
            if file.is_file() and "_build" not in file.parts and "__pycache__" not in file.parts:
                copy = folder / file.relative_to(REPOSITORY)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
    contents = "".join(
        [_contents(folder, *group) for group in (("Use", START), ("Extend", EXTEND), ("Understand", UNDERSTAND))]
        + ["```{toctree}\n:hidden:\n:caption: Look up\n\napi/vantage\n" + "\n".join(RECORD) + "\n```\n"]
    )
    (folder / "index.md").write_text("```{include} README.md\n```\n\n" + contents, encoding="utf-8")
    (folder / "api").mkdir()
    modules = public_modules()
    for name in modules:
        if _is_package(name):
            inside = [module for module in modules if module.rpartition(".")[0] == name]
            (folder / "api" / f"{name}.rst").write_text(_room(name, inside), encoding="utf-8")


def render(out: Path) -> list[str]:
    """Write every page under `out`; what Sphinx warns of."""
    nocolor()
    with tempfile.TemporaryDirectory() as temporary:
        pages, state = Path(temporary) / "pages", Path(temporary) / "state"
        pages.mkdir()
        prepare(pages)
        warnings = io.StringIO()
        Sphinx(pages, REPOSITORY / "docs", out, state, "html", status=None, warning=warnings).build()
        lines = [line.replace(f"{pages}/", "") for line in warnings.getvalue().splitlines()]
        return [line for line in lines if line.strip()]


def entries(out: Path) -> set[str]:
    """Dotted names that the pages under `out` describe, read from their inventory."""
    packed = (out / "objects.inv").read_bytes().split(b"\n", 4)[4]
    rows = (line.split(" ") for line in zlib.decompress(packed).decode("utf-8").splitlines())
    return {name for name, kind, *_ in rows if kind.startswith("py:")}


def absent(described: set[str]) -> Iterator[str]:
    """Public modules and names that are not among `described`."""
    for name in public_modules():
        yield from (full for full in (name, *(f"{name}.{own}" for own in defined_names(name))) if full not in described)


def _contents(folder: Path, caption: str, patterns: tuple[str, ...]) -> str:
    files = [file for pattern in patterns for file in sorted(folder.glob(f"{pattern}.md"))]
    lines = [str(file.relative_to(folder).with_suffix("")) for file in files]
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(lines) + "\n```\n\n"


def _is_package(name: str) -> bool:
    return (SOURCE / Path(*name.split(".")) / "__init__.py").is_file()


def _room(name: str, inside: list[str]) -> str:
    """The page of a package: its own docstring and names, its modules one after another, and its inner packages."""
    rooms = [module for module in inside if _is_package(module)]
    lines = [name, "=" * len(name), "", *_module(name), *_borrowed(name)]
    for module in inside:
        if module not in rooms:
            title = module.removeprefix(f"{name}.")
            lines += [title, "-" * len(title), "", *_module(module)]
    if rooms:
        depth = 1 if name == PACKAGE else 2
        lines += [".. toctree::", f"   :maxdepth: {depth}", "", *(f"   {room}" for room in rooms), ""]
    return "\n".join(lines)


def _module(name: str) -> list[str]:
    names = defined_names(name)
    members = [f"   :members: {', '.join(names)}"] if names else []
    return [f".. automodule:: {name}", *members, ""]


def _borrowed(name: str) -> Iterator[str]:
    """What a package offers of its modules' names, each with a link to where it is described."""
    module, own = importlib.import_module(name), set(defined_names(name))
    links = []
    for public in own_names(name):
        thing = getattr(module, public)
        home = getattr(thing, "__module__", None)
        if public not in own and not isinstance(thing, types.ModuleType):
            described = home and (inspect.isclass(thing) or inspect.isfunction(thing))
            links.append(f":py:obj:`{public} <{home}.{thing.__name__}>`" if described else f"``{public}``")
    if links:
        yield from ("To import from here: " + ", ".join(links) + ".", "")


def main() -> int:
    """Check and build; the exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation; fail on an undocumented public name.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "_build", help="folder to write the pages to")
    out = parser.parse_args().out
    missing = [f"no docstring: {name}" for module in public_modules() for name in undocumented(module)]
    missing += render(out)
    missing += [f"on no page: {name}" for name in absent(entries(out))]
    print("\n".join(missing) if missing else f"{len(public_modules())} modules documented: open {out / 'index.html'}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
