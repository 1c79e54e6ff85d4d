"""Prepares a checkout: system libraries, a virtual environment, hashed dependencies. Standard library only.

Called by every make target as ``python3 docker/setup.py run`` (the product) or ``... test`` (the tests too).
A stamp makes a second call free.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ctypes.util import find_library
from pathlib import Path

if sys.version_info < (3, 11):  # An older one fails on what follows.
    sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}.")
ROOT = Path(__file__).resolve().parent.parent
TOOLS, VENV = ROOT / ".tools", ROOT / ".venv"
PROGRAMS = {
    "chromium": "chromium",
    "chromium-headless-shell": "chromium-headless-shell",
    "postgresql": "pg_config",
    "redis-server": "redis-server",
}
LOCKS = {
    "run": ["requirements.txt", "requirements-demo.txt"],
    "test": ["requirements.txt", "requirements-dev.txt"],
    "test-fast": ["requirements.txt", "requirements-dev.txt"],
}
SYSTEM = {
    "run": ["docker/system-packages.txt"],
    "test": ["docker/system-packages.txt", "docker/system-packages-test.txt"],
    "test-fast": ["docker/system-packages.txt"],
}


def main(purpose: str) -> None:
    """Prepare the checkout for ``purpose``, or exit with a command to type."""
    stamp, wanted = VENV / f".ready-{purpose}", fingerprint(purpose)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if not os.access(ROOT, os.W_OK):
        sys.exit(f"{ROOT} is read-only: it needs .venv and .tools. Prepare it as a user who may write there.")
    missing = missing_system_packages(purpose)
    with ThreadPoolExecutor(1) as beside:
        system = beside.submit(install_system_packages, missing)
        if "python3-pip" in missing:
            system.result()
        install_python_packages(purpose)
        system.result()
    stamp.write_text(wanted)


def fingerprint(purpose: str) -> str:
    """A digest of what the environment is built from; a change means a rebuild."""
    parts = [".".join(map(str, sys.version_info[:2])), str(ROOT)]
    parts += [
        (ROOT / name).read_text() for name in [*LOCKS[purpose], *SYSTEM[purpose], "requirements-uv.txt"]
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def missing_system_packages(purpose: str) -> list[str]:
    """The Debian packages to install; exits with the command to type if this user may not."""
    wanted = [line for name in SYSTEM[purpose] for line in (ROOT / name).read_text().split()]
    if not has_pip():
        wanted.append("python3-pip")
    if not shutil.which("dpkg-query"):
        if not find_library("pangoft2-1.0"):
            sys.exit("The PDF engine needs Pango: install the Pango library of your system, then try again.")
        absent = [name for name, program in PROGRAMS.items() if not shutil.which(program)]
        if purpose == "test" and absent:
            say(f"tests that need {', '.join(absent)} will fail: install your system's packages for them")
        return []
    missing = [name for name in wanted if not is_installed(name)]
    if missing and os.geteuid() != 0:
        sys.exit(
            "Missing system packages. Type this, then try again:\n  sudo apt-get install -y "
            + " ".join(missing)
        )
    return missing


def install_system_packages(missing: list[str]) -> None:
    """Install Debian packages as root."""
    if not missing:
        return
    say("installing system packages: " + " ".join(missing))
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run([*apt, "update"], env=environment)
    run([*apt, "install", "-y", "--no-install-recommends", *missing], env=environment)


def is_installed(package: str) -> bool:
    """Whether Debian knows the package as installed."""
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout == "installed"


def has_pip() -> bool:
    """Whether this Python has pip."""
    return (
        subprocess.run(
            [sys.executable, "-m", "pip", "--version"], capture_output=True, check=False
        ).returncode
        == 0
    )


def install_python_packages(purpose: str) -> None:
    """Install the hashed lock with uv, itself installed from a hashed lock, or with pip if uv fails."""
    say("installing Python packages")
    locks = [flag for name in LOCKS[purpose] for flag in ("-r", name)]
    python = VENV / "bin/python"
    try:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
        ]
        quiet = {"PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        run([*pip, "--upgrade", "--target", str(TOOLS), "-r", "requirements-uv.txt"], env=os.environ | quiet)
        uv, certificates = str(TOOLS / "bin/uv"), os.environ | {"UV_SYSTEM_CERTS": "1"}
        if not is_of_this_python(VENV):
            run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(VENV)], env=certificates)
        # "install", not "sync": "make run" after "make test" must not take the test tools away.
        flags = ["--require-hashes", "--only-binary", ":all:", "--python", str(python)]
        run([uv, "pip", "install", "-q", *flags, *locks], env=certificates)
    except subprocess.CalledProcessError:
        say("uv failed; falling back to venv and pip")
        run([sys.executable, "-m", "venv", *([] if is_of_this_python(VENV) else ["--clear"]), str(VENV)])
        run([str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", "--require-hashes", *locks])


def is_of_this_python(environment: Path) -> bool:
    """Whether the virtual environment exists and has the same minor version of Python."""
    return (environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}").is_dir()


def run(command: list[str], **options: object) -> None:
    """Run one command in the checkout; exit if it fails."""
    subprocess.run(command, cwd=ROOT, check=True, **options)  # type: ignore[call-overload]


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "run")
