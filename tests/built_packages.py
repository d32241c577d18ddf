"""Model packages as `ort-lite package build` writes them, with NPU contexts of another machine."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import TYPE_CHECKING

import onnxruntime
from small_models import feed, mlp

from ort_lite.packaging.build_package import BuildPlan, BuildTarget, build_package

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

OPENVINO, OPENCL, CPU = (f"{name}ExecutionProvider" for name in ("OpenVINO", "OpenCL", "CPU"))
GOLDEN = Path(__file__).parent / "golden"
NPUS = ("openvino-npu-4000", "openvino-npu-5010")


def npu_contexts(folder: Path) -> list[tuple[str, Path]]:
    """Contexts of `mlp()` for two NPUs, which no machine of the tests has."""
    contexts = []
    for platform in ("4000", "5010"):
        packed = GOLDEN / "npu" / f"mlp_npu{platform}_ctx.onnx.xz"
        path = folder / packed.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        contexts.append(("", path))
    return contexts


def build_mlp(
    folder: Path,
    *eps: str,
    contexts: Sequence[tuple[str, Path]] | None = None,
    source: bool = True,
    name: str = "pkg",
) -> Path:
    """A package of `mlp()` in `folder`, compiled for `eps`, with contexts for absent NPUs."""
    folder.mkdir(exist_ok=True)
    model = folder / "mlp.onnx"
    model.write_bytes(mlp().SerializeToString())
    options = {OPENVINO: {"device_type": "CPU"}, OPENCL: {"device": "CPU"}}
    plan = BuildPlan(
        model=model,
        targets=[BuildTarget(ep=ep, options=options[ep]) for ep in eps],
        contexts=npu_contexts(folder) if contexts is None else contexts,
        includes_source=source,
    )
    return build_package(plan, folder / name, force=False, progress=lambda _: None).path


def expected() -> list[np.ndarray]:
    """onnxruntime's answer to `feed(mlp())`."""
    session = onnxruntime.InferenceSession(
        mlp().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feed(mlp())))


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by relative name."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
