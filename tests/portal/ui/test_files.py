"""Vendored files match their manifests, and templates and styles follow the project's rules."""

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from docker import vendor
from portal.ui.icons import ICONS
from portal.ui.templatetags.ui import STATE_ICONS

ROOT = Path(vendor.ROOT)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def test_vendor_check_passes_with_plain_python() -> None:
    script = [sys.executable, "-I", "-S", str(ROOT / "docker/vendor.py"), "--check"]
    result = subprocess.run(script, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "All vendored files are as in their manifests.\n"), (
        result.stderr
    )


def test_vendor_check_fails_for_a_missing_file(tmp_path: Path) -> None:
    for folder in ("docker", "portal/ui", "static/vendor", "tests/browser"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "static/vendor/inter/LICENSE").unlink()
    script = [sys.executable, str(tmp_path / "docker/vendor.py"), "--check"]
    result = subprocess.run(script, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (1, "Not as in the manifest: inter/LICENSE.\n")


def test_changed_and_missing_vendored_files_are_reported(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(vendor.FOLDERS[0], tmp_path / "vendor"))
    with (copy / "icons/icons.svg").open("a") as sprite:
        sprite.write(" ")
    (copy / "inter/LICENSE").unlink()
    assert vendor.changed_files((copy,)) == ["icons/icons.svg", "inter/LICENSE"]


def build_package(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Build a package like the registry's, and return it with its manifest entry."""
    svg = b'<svg><path stroke="none" d="M0 0"/><path d="M1 1" /></svg>'
    icons = {f"icons/outline/{name}.svg": svg for name in ICONS}
    icons |= {f"icons/filled/{name.removesuffix('-filled')}.svg": svg for name in ICONS}
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for name, data in {"a.woff2": b"font", **icons}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    files = {"a/a.woff2": {"from": "a.woff2"}, "icons.svg": {"from": "icons"}, "LICENSE": {}}
    (tmp_path / "LICENSE").write_text("ours")
    return tmp_path / "a.tgz", {"name": "a", "version": "1", "integrity": "", "files": files}


def test_unpack_copies_files_and_builds_the_icon_sprite(tmp_path: Path) -> None:
    archive, package = build_package(tmp_path)
    vendor.unpack(archive, tmp_path, package)
    assert (tmp_path / "a/a.woff2").read_bytes() == b"font"
    assert len((tmp_path / "icons.svg").read_text().splitlines()) == len(ICONS) + 2
    (tmp_path / "manifest.json").write_text(json.dumps({"packages": [package]}))
    assert vendor.changed_files([tmp_path]) == []


def test_a_package_with_the_wrong_checksum_is_rejected(tmp_path: Path) -> None:
    archive, package = build_package(tmp_path)
    with pytest.raises(vendor.UntrustedPackage, match="a 1 has the checksum"):
        vendor.unpack(archive, tmp_path, package | {"integrity": "sha512-of-another"})
    assert not (tmp_path / "a").exists()


def test_the_sprite_contains_exactly_the_listed_icons() -> None:
    sprite = (ROOT / "static/vendor/icons/icons.svg").read_text()
    assert tuple(re.findall('<symbol id="([^"]+)"', sprite)) == ICONS


@pytest.mark.slow
def test_css_classes_are_used_and_template_classes_are_styled() -> None:
    styles = [
        re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        for path in (ROOT / "static/css").glob("*.css")
        if path.name != "admin.css"  # Its classes are used by Django's own templates.
    ]
    styled = {
        name
        for css in styles
        for head in re.findall(r"([^{};]+)\{", css)
        for name in re.findall(r"\.([a-zA-Z][\w-]*)", head)
    }
    sources = [*TEMPLATES, *(ROOT / "portal").rglob("*.py"), *(ROOT / "static/js").glob("*.js")]
    text = "\n".join(path.read_text() for path in sources)
    built = tuple(re.findall(r"((?:sd-)?[a-z]+-)\{", text.replace("sd-{", "")))
    words = set(re.findall(r"[\w-]+", text))
    unused = {name for name in styled - words if not name.startswith(built)}
    badges = {f"sd-{state}" for state in (*STATE_ICONS, "neutral", "accent")}
    assert unused - badges - {"htmx-request"} == set()
    in_templates = re.findall(
        r'class="([^"{]*)"', "".join(path.read_text() for path in TEMPLATES if "admin" not in path.parts)
    )
    plain = {name for names in in_templates for name in names.split() if not name.startswith("sd-")}
    assert plain <= styled


PAGES = [path for path in TEMPLATES if path.stem != "first_day_alone"]
"""Without the report of a first day, which is read as a file."""


def test_templates_follow_the_content_security_policy() -> None:
    banned = r"""\sstyle=|<style|\son\w+=["']|hx-on|js:|<script(?![^>]*\ssrc=)|bg-\w+-lt"""
    assert [path for path in PAGES if re.search(banned, path.read_text())] == []


def test_template_comments_of_several_lines_are_comment_blocks() -> None:
    assert [path for path in TEMPLATES if re.search(r"{#(?!.*#})", path.read_text())] == []


def test_templates_use_only_listed_icons() -> None:
    named = {icon for path in TEMPLATES for icon in re.findall(r'{% icon "([^"]+)"', path.read_text())}
    assert named - set(ICONS) == set()


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (ROOT / "static/css").glob("*.css") if path.stem != "print")
)
def test_colors_are_defined_only_in_the_tokens(name: str) -> None:
    css = (ROOT / f"static/css/{name}.css").read_text()
    colors = set(re.findall(r"#[0-9a-f]{3,8}\b", css)) - {"#ffffff", "#151a21"}
    assert bool(colors) == (name == "tokens")
