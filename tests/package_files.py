"""Model packages written by hand, as any producer could write them."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from small_models import mlp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CPU = "CPUExecutionProvider"
PLAIN = {
    "schema_version": "1.0",
    "package_name": "small",
    "components": {
        "model": {
            "variants": {"cpu": {"ep": CPU, "executor_info": {"ort": {"model_file": "model.onnx"}}}}
        }
    },
}
"""One component with one variant, which the CPU EP runs."""


def write_plain(
    root: Path, change: Callable[[dict[str, Any]], object] | None = None, **fields: object
) -> Path:
    """A package of one small model; `change` edits its manifest, `fields` replace parts of it."""
    (root / "cpu").mkdir(parents=True)
    (root / "cpu" / "model.onnx").write_bytes(mlp().SerializeToString())
    manifest: dict[str, Any] = {**copy.deepcopy(PLAIN), **fields}
    if change is not None:
        change(manifest)
    (root / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return root


def variant_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The body of the one variant."""
    body: dict[str, Any] = manifest["components"]["model"]["variants"]["cpu"]
    return body


def ort_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """Its executor_info["ort"]."""
    body: dict[str, Any] = variant_of(manifest)["executor_info"]["ort"]
    return body
