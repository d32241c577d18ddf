"""What tests ask of ONNX Runtime and its OpenVINO plug-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, np.dtype[Any]]

PROCESS = Path(__file__).with_name("peer_process.py")


class PeerError(Exception):
    """ONNX Runtime's exception: "NotImplemented: [ONNXRuntimeError] : 9 : ..."."""


class Peer:
    """onnxruntime in child processes; files go through `folder`."""

    def __init__(self, folder: Path, packages: str = "") -> None:
        """`packages` is a folder with another onnxruntime than the installed one, or ""."""
        self._folder = folder
        self._environment = {**os.environ, **({"PYTHONPATH": packages} if packages else {})}
        self._count = 0

    def device_names(self) -> list[str]:
        """CPU devices of the plug-in: one, or none where it does not know the processor."""
        found: list[str] = self._ask({"do": "describe", "plugin": True})["devices"]
        return found

    def compile_context(self, model: Path, target: Path, *, embed: bool) -> None:
        """Let the plug-in write a context model."""
        entries = {
            "ep.context_enable": "1",
            "ep.context_file_path": str(target),
            "ep.context_embed_mode": str(int(embed)),
        }
        self._ask({"do": "run", "plugin": True, "model": str(model), "entries": entries})

    def run(
        self, model: Path, feed: Mapping[str, Array], *, plugin: bool, **entries: str
    ) -> list[Array]:
        """All outputs; `entries` are configuration entries, "__" standing for ".".

        Raises:
            PeerError: ONNX Runtime raised.
        """
        inputs, results = self._path("feed.npz"), self._path("results.npz")
        np.savez(inputs, **feed)
        self._ask(
            {
                "do": "run",
                "plugin": plugin,
                "model": str(model),
                "feed": str(inputs),
                "results": str(results),
                "entries": {key.replace("__", "."): value for key, value in entries.items()},
            }
        )
        with np.load(results) as found:
            return [found[name] for name in found.files]

    def compatibility(self, model: Path, *, plugin: bool) -> dict[str, Any]:
        """`compatibility_info` in the model's metadata, and the plug-in's `verdict` on it."""
        return self._ask({"do": "describe", "plugin": plugin, "model": str(model)})

    def _path(self, name: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count}_{name}"

    def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        path = self._path("request.json")
        path.write_text(json.dumps(request), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(PROCESS), str(path)],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
        )
        assert done.returncode == 0, f"onnxruntime ended with {done.returncode}: {done.stderr}"
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        if "error" in answer:
            raise PeerError(f"{answer['error']}: {answer['message']}")
        return answer
