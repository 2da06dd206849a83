"""The documentation: one page per public module from its docstrings, and one per hand-written page.

    python docs/build.py [--out FOLDER]

It ends with exit status 1 and a list when a public name has no docstring, or when a public module or name is on no
page. Public is what has no leading underscore, down to the methods of classes and the fields of dataclasses.
"""

import argparse
import dataclasses
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pdoc.doc
import pdoc.render

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src"
PACKAGE = "vantage"
WRITTEN = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def public_modules(source: Path = SOURCE) -> list[str]:
    """Dotted names of the package's modules, private ones left out."""
    names = []
    for file in sorted((source / PACKAGE).rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            names.append(".".join(parts))
    return names


def written_pages() -> list[Path]:
    """The Markdown files that people wrote."""
    return [REPOSITORY / name for name in WRITTEN] + sorted((REPOSITORY / "docs").glob("*.md"))


def own_names(module: types.ModuleType) -> list[str]:
    """What a module gives its users: its `__all__`, or the public names that it defines itself."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    members = pdoc.doc.Module(module).own_members
    return [member.name for member in members if not member.name.startswith("_") and _defined_here(member, module)]


def load(name: str) -> types.ModuleType:
    """A module; the public names of the package above it are put in place, since it fetches them when first asked."""
    package = importlib.import_module(name.partition(".")[0])
    for public in getattr(package, "__all__", ()):
        getattr(package, public)
    return importlib.import_module(name)


def undocumented(name: str) -> list[str]:
    """Dotted names in the module `name` that lack a docstring."""
    module = load(name)
    missing = [] if (module.__doc__ or "").strip() else [name]
    document = pdoc.doc.Module(module)
    for member_name in own_names(module):
        member = document.get(member_name)
        if member is None:
            missing.append(f"{name}.{member_name} (exported, but not there)")
        elif isinstance(member, pdoc.doc.Class):
            missing.extend(f"{name}.{lacking}" for lacking in _undocumented_in_class(member))
        elif isinstance(member, pdoc.doc.Variable) and not _described(member):
            missing.append(f"{name}.{member_name}")
        elif isinstance(member, pdoc.doc.Function) and not member.docstring.strip():
            missing.append(f"{name}.{member_name}")
    return missing


def render(out: Path) -> list[str]:
    """Write every page under `out`; the modules and names that are on none are returned."""
    pdoc.render.configure(docformat="markdown", math=True, footer_text="Vantage", search=True)
    documents = {name: pdoc.doc.Module(load(name)) for name in public_modules()}
    documents |= {page.stem: pdoc.doc.Module(_page_module(page)) for page in written_pages()}
    out.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        file = out / (name.replace(".", "/") + ".html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pdoc.render.html_module(document, documents), encoding="utf-8")
    (out / "index.html").write_text(pdoc.render.html_index(documents), encoding="utf-8")
    (out / "search.js").write_text(pdoc.render.search_index(documents), encoding="utf-8")
    return list(absent_from_pages(out))


def absent_from_pages(out: Path) -> Iterator[str]:
    """Public modules without a page under `out`, and public names without an entry on their module's page."""
    for name in public_modules():
        file = out / (name.replace(".", "/") + ".html")
        if not file.is_file():
            yield name
            continue
        text = file.read_text(encoding="utf-8")
        module = load(name)
        for member in own_names(module):
            if not inspect.ismodule(getattr(module, member, None)) and f'id="{member}"' not in text:
                yield f"{name}.{member}"


def _undocumented_in_class(document: pdoc.doc.Class) -> Iterator[str]:
    owner = document.obj
    if not (owner.__doc__ or "").strip() or _made_by_dataclass(owner):
        yield document.qualname
    fields = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    for member in document.own_members:
        is_property = isinstance(inspect.getattr_static(owner, member.name, None), property | cached_property)
        if member.name.startswith("_"):
            continue
        elif member.name in fields or is_property or isinstance(member, pdoc.doc.Class):
            written = member.docstring
        elif isinstance(member, pdoc.doc.Function):
            written = _own_docstring(owner, member)
        else:  # an attribute that a constructor sets
            continue
        if not written.strip():
            yield member.fullname.removeprefix(document.modulename + ".")


def _described(variable: pdoc.doc.Variable) -> bool:
    """Whether a constant has a docstring, here or in the module of the package that it was imported from."""
    value = getattr(importlib.import_module(variable.modulename), variable.name, None)
    modules = [
        module for name, module in sys.modules.items() if name.split(".")[0] == variable.modulename.split(".")[0]
    ]
    same = (module for module in modules if vars(module).get(variable.name, module) is value)
    found = (pdoc.doc.Module(module).get(variable.name) for module in same)
    return any(document is not None and document.docstring.strip() for document in found)


def _own_docstring(owner: type, member: pdoc.doc.Function) -> str:
    """What the package says of a method: torch's word for an inherited `forward` describes none of ours."""
    for base in owner.__mro__:
        if base.__module__.split(".")[0] == owner.__module__.split(".")[0]:
            attribute = inspect.getattr_static(base, member.name, None)
            written = inspect.unwrap(getattr(attribute, "__func__", attribute)).__doc__ if attribute else None
            if written:
                return written
    return ""


def _made_by_dataclass(owner: type) -> bool:
    """Whether the docstring is the signature that `dataclass` writes where nobody wrote one."""
    return dataclasses.is_dataclass(owner) and (owner.__doc__ or "").startswith(f"{owner.__name__}(")


def _defined_here(member: pdoc.doc.Doc, module: types.ModuleType) -> bool:
    return isinstance(member, pdoc.doc.Variable) or getattr(member.obj, "__module__", None) == module.__name__


def _page_module(page: Path) -> types.ModuleType:
    """A written page in the shape that the renderer takes."""
    return types.ModuleType(page.stem, page.read_text(encoding="utf-8"))


def main() -> int:
    """Check and build; the exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation; fail on an undocumented public name.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "_build", help="folder to write the pages to")
    out = parser.parse_args().out
    missing = [f"no docstring: {name}" for module in public_modules() for name in undocumented(module)]
    missing += [f"on no page: {name}" for name in render(out)]
    print("\n".join(missing) if missing else f"{len(public_modules())} modules documented in {out}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
