"""Builds the wheel and the sdist, checks them, and runs each in an environment of its own.

`python .ci/check_release.py [--tag v1.2.3]`, or `make release-check`. The distributions are
written to dist/. With `--install-only` those in dist/ are checked as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
TOOLS = ("build==1.6.1", "twine==7.0.0", "check-wheel-contents==0.6.3")
EXTRAS = "cli"
"""Extras that the smoke test needs; SDKs are not among them."""


def main() -> int:
    """Check the release; 0 if all is well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tag", default="", help="the release's tag, compared with the version")
    parser.add_argument("--install-only", action="store_true", help="check what dist/ has")
    options = parser.parse_args()
    version = read_version()
    if options.tag and options.tag != f"v{version}":
        print(f"error: the tag is {options.tag}, the version in ort_lite/version.py {version}")
        return 1
    with TemporaryDirectory(prefix="ort-lite-release-") as folder:
        if not options.install_only:
            build(Path(folder))
        distributions = sorted(DIST.glob(f"ort_lite-{version}*"))
        if [path.suffix for path in distributions] != [".whl", ".gz"]:
            print(f"error: expected a wheel and an sdist of {version}, dist/ has {distributions}")
            return 1
        for path in distributions:
            try_out(path, version, Path(folder) / path.suffix[1:])
    print(f"ort-lite {version}: wheel and sdist built, checked and tried out")
    return 0


def read_version() -> str:
    """The version, from the one place that has it."""
    text = (ROOT / "ort_lite" / "version.py").read_text(encoding="utf-8")
    match = re.search(r'^VERSION = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        raise SystemExit("error: ort_lite/version.py has no VERSION")
    return match[1]


def build(folder: Path) -> None:
    """Build both distributions from the source and check their metadata and contents."""
    shutil.rmtree(DIST, ignore_errors=True)
    python = make_environment(folder / "tools", *TOOLS)
    # Built from a copy: setuptools takes over what an earlier build left in build/.
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, source, ignore=ignored)
    run(python, "-m", "build", "--outdir", str(DIST), str(source))
    distributions = [str(path) for path in sorted(DIST.iterdir())]
    run(python, "-m", "twine", "check", "--strict", *distributions)
    wheel = next(path for path in distributions if path.endswith(".whl"))
    run(python, "-m", "check_wheel_contents", "--config", str(ROOT / "pyproject.toml"), wheel)


def try_out(distribution: Path, version: str, folder: Path) -> None:
    """Install a distribution into a bare environment and run the smoke test there."""
    python = make_environment(folder, f"{distribution}[{EXTRAS}]")
    smoke = Path(__file__).with_name("smoke_test.py")
    run(python, "-I", str(smoke), version, cwd=folder)
    print(f"{distribution.name}: works")


def make_environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment with these packages; its interpreter."""
    try:
        venv.create(folder, with_pip=True)
        pip = [folder / ("Scripts" if os.name == "nt" else "bin") / "python", "-m", "pip"]
    except subprocess.CalledProcessError:  # Debian without ensurepip
        venv.create(folder, with_pip=False, clear=True)
        pip = [Path(sys.executable), "-m", "pip", "--python", str(folder)]
    command = [*map(str, pip), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *requirements], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a command; ends the check if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, check=False)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, command[1:4]))} ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
