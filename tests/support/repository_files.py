"""The files of the checkout: the package, and the pages that describe it."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


SOURCE = REPOSITORY / "src"


FILES = sorted((SOURCE / "vantage").rglob("*.py"))


PAGES = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((REPOSITORY / "docs").rglob("*.md"))


OTHER_PAGES = [REPOSITORY / name for name in ("CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")]


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def short(file: Path) -> str:
    return str(file.relative_to(REPOSITORY))
