"""Sessions with the model cache, each in a process of its own, on an EP that starts quickly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plugin.installed_site import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plugin.installed_site import Site

PROGRAM = """
import json, sys
import numpy as np
import ort_lite as ort
with ort.InferenceSession(sys.argv[1], providers=["ExampleExecutionProvider"]) as session:
    answer = session.run(None, {"x": np.arange(8, dtype=np.float32).reshape(2, 4)})
    report = session.load_report()
print(json.dumps({"cache": report.cache.state, "why": report.cache.reason,
                  "answer": answer[0].tolist()}))
"""


@dataclass(frozen=True)
class Children:
    """Processes that open and run one model.

    Attributes:
        site: Where the EP is installed.
        cache: The cache's folder.
    """

    site: Site
    model: Path
    cache: Path

    def start(self, prelude: str = "") -> subprocess.Popen[str]:
        """A child that runs `prelude` first."""
        path = os.pathsep.join(map(str, (self.site.folder, ROOT)))
        return subprocess.Popen(
            [sys.executable, "-c", prelude + PROGRAM, str(self.model)],
            cwd=ROOT,
            env={**os.environ, "ORT_LITE_CACHE_DIR": str(self.cache), "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, prelude: str = "") -> Mapping[str, Any]:
        """What such a child says."""
        return told(self.start(prelude))


def told(process: subprocess.Popen[str]) -> Mapping[str, Any]:
    """What a child said; fails with its stderr if it did not get there."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer
