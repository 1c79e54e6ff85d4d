"""Writes `docker/settings.md`, the page of all settings, from ``portal/settings.py``. Standard library only.

A setting's row comes from the call that reads it and from the ``#:`` comment above that statement. A default that is
not a literal is spelled out at the end of the comment: ``Default: …``.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS, PAGE = ROOT / "portal/settings.py", ROOT / "docker/settings.md"
HEAD = """# Settings

Made by `docker/settings_reference.py` from `portal/settings.py`; edit that. `required` means without `DEBUG`.

"""
TAIL = """
Read outside the settings module: `ENV_FILE` (another file instead of `.env`), `WEB_CONCURRENCY` (web processes),
`PORT` and `SANDBOX_PORT` (the demo only), and the `OTEL_` variables of traces, which [the guide](README.md) explains.
"""
TITLE = re.compile(r"# --- (.+) ---")
DEFAULT_POSITION = {"one_of": 2, "several_of": 2, "at_least": 2, "address": 2}
READERS = {
    "text", "flag", "comma_separated", "pattern_text", "pairs", "readable_file", "time_zone", *DEFAULT_POSITION
}  # fmt: skip


def write() -> None:
    PAGE.write_text(page())


def page() -> str:
    return f"{HEAD}{reference()}{TAIL}"


def reference() -> str:
    """Every documented setting as Markdown tables, one for each section of the settings module."""
    source = SETTINGS.read_text()
    lines, rows = source.splitlines(), {call.lineno: (call, node) for call, node in setting_calls(source)}
    out: list[str] = []
    title = "General"
    for number, line in enumerate(lines, 1):
        if match := TITLE.fullmatch(line):
            title = match[1]
        if number in rows and (purpose := comment_above(lines, rows[number][1].lineno)):
            if f"### {title}" not in out:
                out += [
                    "",
                    f"### {title}",
                    "",
                    "| Setting | Default | Values | Purpose |",
                    "|---|---|---|---|",
                ]
            out.append(row(rows[number][0], purpose))
    return "\n".join(out).strip() + "\n"


def setting_calls(source: str) -> Iterator[tuple[ast.Call, ast.stmt]]:
    """Each call that reads a setting, with the assignment it is part of."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            yield from (
                (call, node) for call in ast.walk(node) if isinstance(call, ast.Call) and is_reader(call)
            )


def is_reader(call: ast.Call) -> bool:
    """Whether this call reads a setting from the environment."""
    return (
        isinstance(call.func, ast.Name) and call.func.id in READERS and isinstance(call.args[0], ast.Constant)
    )


def comment_above(lines: list[str], number: int) -> str:
    """The ``#:`` comment that ends on the line before this one."""
    comment: list[str] = []
    while lines[number - len(comment) - 2].lstrip().startswith("#:"):
        comment.insert(0, lines[number - len(comment) - 2].lstrip()[2:].strip())
    return " ".join(comment)


def row(call: ast.Call, comment: str) -> str:
    """One line of a table."""
    purpose, _, default = comment.partition(" Default: ")
    default = default.removesuffix(".") or worded_default(call)
    name = ast.literal_eval(call.args[0])
    return f"| `{name}` | {default} | {values(call)} | {purpose} |"


def worded_default(call: ast.Call) -> str:
    """The default without DEBUG, as far as it is a literal."""
    position = DEFAULT_POSITION.get(ast.unparse(call.func), 1)
    node: ast.expr = call.args[position] if len(call.args) > position else ast.Constant("")
    if call.func.id == "pairs":  # type: ignore[attr-defined]
        return "–"
    if isinstance(node, ast.IfExp) and ast.unparse(node.test) == "DEBUG":
        node = node.orelse
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "outside_debug":
        return "required"
    if isinstance(node, ast.BinOp):  # 24 * 60
        return f"`{ast.literal_eval(node.left) * ast.literal_eval(node.right)}`"
    value = ast.literal_eval(node)
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    return f"`{value}`" if value != "" else "–"


def values(call: ast.Call) -> str:
    """What the setting accepts."""
    match ast.unparse(call.func):
        case "flag":
            return "`on`, `off`"
        case "at_least":
            lowest = call.args[1]
            return (
                f"{lowest.value} or more"
                if isinstance(lowest, ast.Constant)
                else f"`{ast.unparse(lowest)}` or more"
            )
        case "one_of":
            return ", ".join(f"`{choice}`" for choice in ast.literal_eval(call.args[1]) if choice)
        case "several_of":
            return (
                "list of "
                + ", ".join(f"`{choice}`" for choice in ast.literal_eval(call.args[1]))
                + "; or `none`"
            )
        case "comma_separated":
            return "list"
        case "pairs":
            return "list of `NAME=ROLE`"
        case "readable_file":
            return "file"
        case "time_zone":
            return "time zone"
        case "address":
            return "URL"
        case _:
            return "text"


if __name__ == "__main__":
    write()
