"""The walk-throughs of CONTRIBUTING.md work word for word on a copy of the checkout."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from portal.settings import BASE_DIR

pytestmark = pytest.mark.slow

SECTIONS = re.split(r"(?m)^## ", (BASE_DIR / "CONTRIBUTING.md").read_text())
# A section, its change if it has one, and the commands to type after it.
WALKS = [
    (section.partition("\n")[0], *blocks)
    for section in SECTIONS
    for blocks in re.findall(r"(?s)(?:```diff\n(.*?)```.*?)?```sh\n(.*?)```", section)
]


def test_there_are_three_walk_throughs() -> None:
    assert [(title, bool(change)) for title, change, _ in WALKS] == [
        ("Walk-through: a panel", True),
        ("Walk-through: a column that isn't stored yet", True),
        ("Adding an operation", False),
    ]


@pytest.mark.parametrize(("change", "commands"), [pytest.param(*rest, id=title) for title, *rest in WALKS])
def test_a_walk_through_works(change: str, commands: str, tmp_path: Path) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=BASE_DIR, check=True, capture_output=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (BASE_DIR / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(BASE_DIR / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(BASE_DIR / ".venv")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "DJANGO_", "COV_", "DATABASE_URL"))
    }
    for command, given in (["git", "apply", "--allow-empty"], change), (["sh", "-e"], commands):
        done = subprocess.run(
            command, cwd=tmp_path, input=given, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
