"""Runs packages of PyPI with onnxruntime and with ort_lite in its place, and compares the answers.

`python tests/packages/check_packages.py [NAME ...] [--on own,cpu,openvino,opencl] [--site FOLDER]`.
Installs requirements.txt (0.6 GB) into FOLDER when that changed. Each of programs/ runs on each
execution provider, on OpenVINO and OpenCL twice, with a model cache. It has to end with 0, answer
what it answers with onnxruntime, print no more, and leave nothing in its folder; else this ends
with 1. The last column is CPU time over onnxruntime's, which says little of programs that end
within a second.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent)]

from packages.answers import difference  # noqa: E402 - the paths come first
from packages.programs.inputs import ANSWER  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAMS = HERE / "programs"
REQUIREMENTS = HERE / "requirements.txt"
STAND_IN = ["-m", "ort_lite.as_onnxruntime"]
PROVIDERS = ("own", "openvino", "opencl")
"""Where programs run; on `own` they run where they ask to, as a rule on the CPU EP."""
CACHED = ("openvino", "opencl")
CACHE = "ORT_LITE_CACHE_DIR"
LONGEST = 900
"""Seconds after which a program is stuck: a first start on OpenCL compiles for minutes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended.

    Attributes:
        answer: None where it gave none.
        left: Names of what it left in its working folder.
        seconds: CPU time.
    """

    code: int
    answer: Any
    output: str
    errors: str
    left: tuple[str, ...]
    seconds: float


def main() -> int:
    """Install, run, print a line for each run, and say whether all is as with onnxruntime."""
    known = {path.stem.removeprefix("run_"): path for path in sorted(PROGRAMS.glob("run_*.py"))}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--on", default=",".join(PROVIDERS), help="execution providers")
    parser.add_argument("--site", type=Path, default=ROOT / ".models" / "packages")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(known)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected {', '.join(known)}")
    install(asked.site)
    failed = 0
    for name in asked.names or known:
        for line, fine in check(known[name], asked.site, asked.on.split(",")):
            failed += not fine
            sys.stdout.write(f"{name:24}{line}\n")
            sys.stdout.flush()
    return 1 if failed else 0


def install(site: Path) -> None:
    """Have the pinned packages in `site`, and nothing else."""
    stamp = site / "installed.txt"
    wanted = REQUIREMENTS.read_text("utf-8")
    if stamp.is_file() and stamp.read_text("utf-8") == wanted:
        return
    if site.is_dir():
        shutil.rmtree(site)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", site, "--requirement", REQUIREMENTS], check=True)
    stamp.write_text(wanted, "utf-8")


def check(program: Path, site: Path, providers: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """A line for each run of a program, and whether it went as with onnxruntime."""
    expected = run([program], site)
    if expected.code or expected.answer is None:
        last = expected.errors.strip().splitlines()[-1:] or [""]
        yield f"onnxruntime: exit code {expected.code}: {last[0]}", False
        return
    for provider in providers:
        with TemporaryDirectory() as folder:
            chosen = [] if provider == "own" else ["--providers", provider]
            for start, cache in enumerate([folder, folder] if provider in CACHED else [""]):
                found = run([*STAND_IN, *chosen, program], site, {CACHE: cache})
                what = fault(expected, found)
                label = f"{provider}{' again' if start else ''}"
                ratio = found.seconds / expected.seconds
                yield f"{label:16} {what or 'same':50} {ratio:5.1f}", not what


def run(
    arguments: Sequence[str | Path], site: Path, variables: dict[str, str] | None = None
) -> Ended:
    """Run Python with the packages, in an empty folder."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as aside:
        answer = Path(aside, "answer.json")
        environment = {**os.environ, "PYTHONPATH": f"{site}", ANSWER: f"{answer}"}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
        environment |= {key: value for key, value in (variables or {}).items() if value}
        before = _cpu_seconds()
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        return Ended(
            ended.returncode,
            json.loads(answer.read_text("utf-8")) if answer.is_file() else None,
            ended.stdout.decode(errors="replace"),
            ended.stderr.decode(errors="replace"),
            tuple(sorted(path.name for path in Path(folder).iterdir())),
            _cpu_seconds() - before,
        )


def fault(expected: Ended, found: Ended) -> str:
    """What of a run is not as it was with onnxruntime; "" if nothing."""
    if found.code:
        last = found.errors.strip().splitlines()[-1:] or [""]
        return f"exit code {found.code}: {last[0]}"
    if len(found.output.splitlines()) > len(expected.output.splitlines()):
        return f"prints {found.output!r}, not {expected.output!r}"
    more = set(found.left) - set(expected.left)
    if more:
        return f"leaves {', '.join(sorted(more))}"
    return difference(expected.answer, found.answer)


def _cpu_seconds() -> float:
    """Of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
