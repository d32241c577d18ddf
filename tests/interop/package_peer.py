"""What tests ask of ONNX Runtime's C API for model packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PROCESS = Path(__file__).with_name("package_process.py")


@dataclass(kw_only=True)
class Answer:
    """What onnxruntime says of a package: an error, or what it chose and computed."""

    error: str = ""
    components: dict[str, dict[str, str]] = field(default_factory=dict)
    resolved: dict[str, str] = field(default_factory=dict)
    variant: str = ""
    folder: str = ""
    results: list[np.ndarray] = field(default_factory=list)
    schema: int = 0


def ask(
    folder: Path,
    packages: list[Path],
    *,
    select: str = "",
    feed: dict[str, np.ndarray] | None = None,
    resolve: tuple[str, ...] = (),
    plugin: str | None = None,
) -> list[Answer]:
    """Open each package, select a variant and run it as far as asked.

    Args:
        folder: For the files that go between the processes.
        packages: Opened by one process, one after the other.
        select: A component; "" opens only.
        feed: By input name; None creates no session.
        resolve: Texts for ModelPackage_ResolveStringRef.
        plugin: Ask with the OpenVINO plug-in's CPU device, of the onnxruntime in this folder, or
            of the installed one for ""; None asks with the CPU EP.
    """
    inputs = folder / "package_feed.npz"
    if feed is not None:
        np.savez(inputs, **feed)
    requests = []
    for at, package in enumerate(packages):
        request: dict[str, Any] = {"package": str(package), "select": select}
        request |= {"plugin": plugin is not None, "resolve": list(resolve)}
        if feed is not None:
            request |= {"feed": str(inputs), "results": str(folder / f"package_{at}.npz")}
        requests.append(request)
    path = folder / "package_requests.json"
    path.write_text(json.dumps(requests), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(PROCESS), str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **({"PYTHONPATH": plugin} if plugin else {})},
    )
    assert done.returncode == 0, f"onnxruntime ended with {done.returncode}: {done.stderr}"
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(packages), done.stdout
    answers = []
    for request, line in zip(requests, lines, strict=True):
        if "error" in line:
            answers.append(Answer(error=f"{line['error']}: {line['message']}"))
            continue
        answer = Answer(**line)
        if feed is not None:
            with np.load(request["results"]) as results:
                answer.results = [results[name] for name in results.files]
        answers.append(answer)
    return answers
