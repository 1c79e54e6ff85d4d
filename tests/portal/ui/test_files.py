"""Vendored files are those of their manifests; templates hold nothing that the content policy forbids."""

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

ROOT = Path(vendor.ROOT)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def test_the_script_finds_the_vendored_files_as_in_their_manifests_with_no_more_than_python() -> None:
    script = [sys.executable, "-I", "-S", str(ROOT / "docker/vendor.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "All vendored files are as in their manifests.\n"), (
        done.stderr
    )


def test_the_script_stops_where_a_vendored_file_was_changed(tmp_path: Path) -> None:
    for folder in ("docker", "portal/ui", "static/vendor", "tests/browser"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "static/vendor/inter/LICENSE").unlink()
    script = [sys.executable, str(tmp_path / "docker/vendor.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "Not as in the manifest: inter/LICENSE.\n")


def test_a_changed_and_a_missing_vendored_file_are_named(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(vendor.FOLDERS[0], tmp_path / "vendor"))
    with (copy / "tabler/tabler.css").open("a") as css:
        css.write(" ")
    (copy / "inter/LICENSE").unlink()
    assert vendor.changed_files((copy,)) == ["tabler/tabler.css", "inter/LICENSE"]


def package_of(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A package like those of the registry, and its entry in a manifest."""
    css = (
        b'@charset "UTF-8";a{color:red}.kept:not(.gone),.gone,.kept .gone{top:0}@media print{.gone{top:1px}'
        b'.kept[data-x="a,b"]:is(b,i){top:2px}}@media all{.gone{top:3px}}\n/*# sourceMappingURL=a.css.map */'
    )
    drawing = b'<svg><path stroke="none" d="M0 0"/><path d="M1 1" /></svg>'
    drawings = {f"icons/outline/{name}.svg": drawing for name in ICONS}
    drawings |= {f"icons/filled/{name.removesuffix('-filled')}.svg": drawing for name in ICONS}
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for name, data in {"a.css": css, **drawings}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    files = {"a/a.css": {"from": "a.css", "classes": ["kept"]}, "icons.svg": {"from": "icons"}, "LICENSE": {}}
    (tmp_path / "LICENSE").write_text("ours")
    return tmp_path / "a.tgz", {"name": "a", "version": "1", "integrity": "", "files": files}


def test_of_a_style_sheet_what_is_used_is_vendored_in_its_layer_and_without_its_map(tmp_path: Path) -> None:
    archive, package = package_of(tmp_path)
    vendor.unpack(archive, tmp_path, package)
    print_rule = '@media print{.kept[data-x="a,b"]:is(b,i){top:2px}}'
    kept = f"@layer tabler{{a{{color:red}}.kept:not(.gone){{top:0}}{print_rule}}}\n"
    assert (tmp_path / "a/a.css").read_text() == kept
    assert len((tmp_path / "icons.svg").read_text().splitlines()) == len(ICONS) + 2
    (tmp_path / "manifest.json").write_text(json.dumps({"packages": [package]}))
    assert vendor.changed_files([tmp_path]) == []


def test_a_package_with_another_checksum_is_refused(tmp_path: Path) -> None:
    archive, package = package_of(tmp_path)
    with pytest.raises(vendor.UntrustedPackage, match="a 1 has the checksum"):
        vendor.unpack(archive, tmp_path, package | {"integrity": "sha512-of-another"})
    assert not (tmp_path / "a").exists()


def test_the_sprite_holds_the_icons_in_use_and_no_other() -> None:
    sprite = (ROOT / "static/vendor/icons/icons.svg").read_text()
    assert tuple(re.findall('<symbol id="([^"]+)"', sprite)) == ICONS


def test_every_class_of_a_page_that_is_not_ours_has_a_rule() -> None:
    style = "".join(sheet.read_text() for sheet in (ROOT / "static").rglob("*.css"))
    known = set(re.findall(r"\.([\w-]+)", style))
    for template in TEMPLATES:
        pieces = re.findall(r'class="([^"{]*)"', template.read_text())
        names = {name for piece in pieces for name in piece.split() if not name.startswith("sd-")}
        assert names <= known or "admin" in template.parts, (template, names - known)


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_templates_hold_nothing_that_the_content_policy_forbids(template: Path) -> None:
    banned = r"""\sstyle=|<style|\son\w+=["']|hx-on|js:|<script(?![^>]*\ssrc=)|bg-\w+-lt"""
    assert not re.search(banned, template.read_text())


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_no_comment_of_a_template_ends_up_on_the_page(template: Path) -> None:
    assert not re.search(r"{#(?!.*#})", template.read_text()), (
        "a comment of several lines needs {% comment %}"
    )


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_templates_use_only_icons_that_the_sprite_holds(template: Path) -> None:
    assert set(re.findall(r'{% icon "([^"]+)"', template.read_text())) <= set(ICONS)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (ROOT / "static/css").glob("*.css") if path.stem != "print")
)
def test_colours_are_named_only_in_the_tokens(name: str) -> None:
    css = (ROOT / f"static/css/{name}.css").read_text()
    colours = set(re.findall(r"#[0-9a-f]{3,8}\b", css)) - {"#ffffff", "#151a21"}
    assert bool(colours) == (name == "tokens")
