"""Settings of the documentation; `docs/build.py` prepares the pages and runs Sphinx with them."""

import re
from collections.abc import Iterator
from typing import Any

from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment

import vantage

project = "Vantage"
author = "The Vantage authors"
copyright = "the Vantage authors, Apache License 2.0"
version = release = vantage.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
exclude_patterns = ["README.md"]  # it is the beginning of index.md
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
html_theme = "furo"
html_title = f"Vantage {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {"navigation_with_keys": True}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"show-inheritance": False}
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False  # every page would carry every name in its navigation

_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_NAME = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:\.\w+)?|vantage(?:\.\w+)+")
_EMPHASIS = re.compile(r"(?<![\w*])(\*\*?)(?=\S)[^*\n]+(?<=\S)\1(?![\w*])")


def restructured(lines: list[str]) -> list[str]:
    """A docstring in Markdown, as reStructuredText: code spans, indented code, and signs that mean nothing."""
    result: list[str] = []
    for block in _blocks(lines):
        if block[0].startswith(">>>"):
            result += block
        elif all(line.startswith("    ") for line in block):
            result += ["::", "", *block]
        elif block[0].startswith(("* ", "- ")):
            result += _items(block)
        else:
            result += _prose("\n".join(block)).split("\n")
        result.append("")
    return result


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines between empty ones."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _items(block: list[str]) -> list[str]:
    """A list, each item with its mark and the lines that go on with it."""
    text = "\n".join(block)
    return [
        line if number else f"* {line}"
        for item in re.split(r"^[*-] ", text, flags=re.MULTILINE)[1:]
        for number, line in enumerate(_prose(item.rstrip("\n")).split("\n"))
    ]


def _prose(text: str) -> str:
    """A paragraph: names link to what they name, all other code is literal, and other signs stand for themselves."""
    parts, end = [], 0
    for match in _CODE.finditer(text):
        parts.append(_escaped(text[end : match.start()]))
        code = match.group(2).replace("\n", " ").strip()
        parts.append(f":py:obj:`{code}`" if _NAME.fullmatch(code) else f"``{code}``")
        parts.append("\\ " if text[match.end() : match.end() + 1].isalnum() else "")
        end = match.end()
    return "".join([*parts, _escaped(text[end:])])


def _escaped(text: str) -> str:
    """Text whose asterisks, bars and final underscores mean nothing; *emphasis* stays."""
    parts, end = [], 0
    for match in _EMPHASIS.finditer(text):
        parts += [_plain(text[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*parts, _plain(text[end:])])


def _plain(text: str) -> str:
    return re.sub(r"([*|`\\]|_(?!\w))", r"\\\1", text)


class NamesByLastWord(PythonDomain):
    """Sphinx looks through all names for each short one in a signature; those that end alike are enough."""

    _by_last_word: dict[str, list[str]]
    _count = 0

    def find_obj(
        self, env: BuildEnvironment, modname: str, classname: str, name: str, type: str | None, searchmode: int = 0
    ) -> list[tuple[str, ObjectEntry]]:
        """What Sphinx finds."""
        names = self.objects
        last_word = name.removesuffix("()").rpartition(".")[2]
        self.data["objects"] = {full: names[full] for full in self._ending_in(last_word)}
        try:
            return super().find_obj(env, modname, classname, name, type, searchmode)
        finally:
            self.data["objects"] = names

    def _ending_in(self, last_word: str) -> list[str]:
        if self._count != len(self.objects):  # pages are still being read
            self._by_last_word, self._count = {}, len(self.objects)
            for full in self.objects:
                self._by_last_word.setdefault(full.rpartition(".")[2], []).append(full)
        return self._by_last_word.get(last_word, [])


def setup(app: Any) -> None:
    """Docstrings are Markdown, as they are read in an editor."""
    app.add_domain(NamesByLastWord, override=True)

    def convert(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
        lines[:] = restructured(lines)

    app.connect("autodoc-process-docstring", convert)
