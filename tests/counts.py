"""Print how large the project is. The counts are for information; no test checks them."""

import ast
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_TEMPLATE_COLUMNS = 160
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Count lines of code without blank lines, comments and docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def modules(package: str) -> Iterable[Path]:
    """Return the modules of a package without its migrations."""
    return (path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts)


def counts() -> dict[str, int]:
    portal = ROOT / "portal"
    templates = [
        line for path in (ROOT / "templates").rglob("*.html") for line in path.read_text().splitlines()
    ]
    return {
        "packages under portal/": sum((path / "__init__.py").exists() for path in portal.iterdir()),
        "modules directly under portal/": len(list(portal.glob("[!_]*.py"))),
        "code lines of portal/": sum(code_lines(path.read_text()) for path in modules("portal")),
        "code lines of servicing/": sum(code_lines(path.read_text()) for path in modules("servicing")),
        "migrations": len(list(portal.glob("*/migrations/0*.py"))),
        "templates": len(list((ROOT / "templates").rglob("*.html"))),
        f"template lines over {MAX_TEMPLATE_COLUMNS} characters": sum(
            len(line) > MAX_TEMPLATE_COLUMNS for line in templates
        ),
        "bytes of CSS": sum(path.stat().st_size for path in (ROOT / "static/css").glob("*.css")),
        "bytes of README.md": (ROOT / "README.md").stat().st_size,
    }


if __name__ == "__main__":
    for label, number in counts().items():
        print(f"{number:>8,}  {label}")
