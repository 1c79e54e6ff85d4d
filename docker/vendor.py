"""Fetches the third-party files that the portal serves, or checks that they are unchanged.

    python3 docker/vendor.py [--check]

Each folder of such files has a ``manifest.json`` that lists packages with version, license and checksum, and for
each file its place in the package and its SHA-256. ``--check`` needs no network; without it, npm fetches the packages
and the files are rewritten. To upgrade, change ``version``, empty ``integrity`` and run this. Standard library only.
"""

import base64
import hashlib
import json
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT / "static" / "vendor", ROOT / "tests" / "browser")
ICONS: tuple[str, ...] = runpy.run_path(str(ROOT / "portal/ui/icons.py"))["ICONS"]

ICON_PATH = re.compile(r"<path (?!stroke=\"none\")[^>]+/>")


class UntrustedPackage(Exception):
    """The registry's package is not the one that the manifest names."""


def main(arguments: list[str]) -> None:
    """Fetch the files again unless they are only to be checked; stop where one differs from its manifest."""
    if arguments not in ([], ["--check"]):
        sys.exit("Type: python3 docker/vendor.py [--check]")
    if not arguments:
        pack()
    if changed := changed_files():
        sys.exit(f"Not as in the manifest: {', '.join(changed)}.")
    print("All vendored files are as in their manifests.")


def changed_files(folders: Iterable[Path] = FOLDERS) -> list[str]:
    """Vendored files that are missing, or differ from their manifest."""
    return [
        name
        for folder in folders
        for package in _read(folder)["packages"]
        for name, file in package["files"].items()
        if not (path := folder / name).is_file() or _sha256(path.read_bytes()) != file["sha256"]
    ]


def pack() -> None:
    """Fetch every package again and rewrite its files and their sums."""
    for folder in FOLDERS:
        manifest = _read(folder)
        for package in manifest["packages"]:
            with tempfile.TemporaryDirectory() as scratch:
                unpack(_fetch(f"{package['name']}@{package['version']}", Path(scratch)), folder, package)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def unpack(archive: Path, folder: Path, package: dict[str, Any]) -> None:
    """Write the files of one package and note their sums, if the package is the one that the manifest means."""
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if package["integrity"] not in ("", integrity):
        raise UntrustedPackage(f"{package['name']} {package['version']} has the checksum {integrity}")
    package["integrity"] = integrity
    with tarfile.open(archive) as contents:
        for name, file in package["files"].items():
            # A file without an origin is ours: a licence text that the package itself lacks.
            data = _build(contents, file) if "from" in file else (folder / name).read_bytes()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
            file["sha256"] = _sha256(data)


def _fetch(package: str, scratch: Path) -> Path:
    packed = subprocess.run(
        ["npm", "pack", "--json", package],
        cwd=scratch,
        check=True,
        capture_output=True,
        text=True,
    )
    return scratch / str(json.loads(packed.stdout)[0]["filename"])


def _build(contents: tarfile.TarFile, file: dict[str, Any]) -> bytes:
    if file["from"] == "icons":
        return _sprite(contents)
    return _member(contents, file["from"])


def _sprite(contents: tarfile.TarFile) -> bytes:
    symbols = "\n".join(_symbol(contents, name) for name in ICONS)
    return f'<svg xmlns="http://www.w3.org/2000/svg">\n{symbols}\n</svg>\n'.encode()


def _symbol(contents: tarfile.TarFile, name: str) -> str:
    folder, paint = (
        ("filled", ' fill="currentColor" stroke="none"') if name.endswith("-filled") else ("outline", "")
    )
    drawing = _member(contents, f"icons/{folder}/{name.removesuffix('-filled')}.svg").decode()
    return f'<symbol id="{name}" viewBox="0 0 24 24"{paint}>{"".join(ICON_PATH.findall(drawing))}</symbol>'


def _member(contents: tarfile.TarFile, name: str) -> bytes:
    member = contents.extractfile(f"package/{name}")
    if member is None:
        raise FileNotFoundError(name)
    return member.read()


def _read(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])
