"""Compiles models for rows of the matrix on one machine, where a vendor's compiler allows that.

Intel's NPU compiler compiles for any platform that is named. Every other SDK that has an execution
provider here compiles for the device and driver at hand; `why_not` says so for each.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from ort_lite.context.quote_argument import quote_argument
from ort_lite.hw.patterns import is_within
from ort_lite.hw.report_file import write_report_file
from ort_lite.options import SessionOptions
from ort_lite.providers.catalog import entries, open_provider
from ort_lite.session import InferenceSession
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import MatrixModel
    from ort_lite.planning.explain import SessionReport

FLEET_VERSION = 1
FLEET_FILE = "fleet.json"
OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
PLATFORM_DIGITS = 4


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file, relative to the folder of the result."""

    path: str
    bytes: int
    sha256: str


class CompiledModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model compiled for one row.

    Attributes:
        problem: Why there is no context; "" if there is one.
        requirements: What the vendor's compiler says that its payloads need.
        partitions: Number of compiled partitions of the row's execution provider.
        taken: Operator to its number of nodes in these partitions.
        left: Operator to its number of nodes that run elsewhere, with the reason.
    """

    model: str
    problem: str = ""
    requirements: str = ""
    partitions: int = 0
    taken: dict[str, int] = {}
    left: dict[str, tuple[int, str]] = {}
    files: tuple[Artifact, ...] = ()


class CompiledRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row; `why_not` says why nothing was compiled for it."""

    row: str
    target: str = ""
    why_not: str = ""
    models: tuple[CompiledModel, ...] = ()


class FleetResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one machine compiled for rows of a matrix.

    Attributes:
        compilers: SDK to its version on that machine.
    """

    version: int = FLEET_VERSION
    commit: str = ""
    compilers: dict[str, str] = {}
    rows: tuple[CompiledRow, ...] = ()


def target_options(row: ExpandedRow, openvino: str) -> tuple[dict[str, str], str]:
    """Provider options that compile for a row's device without having it, and why there are none.

    Args:
        row: Of the matrix.
        openvino: Version of the OpenVINO that is installed; "" for none.
    """
    if row.ep == CPU:
        return {}, "the CPU EP interprets models and keeps no contexts"
    if row.ep != OPENVINO:
        return {}, (
            f"{row.ep} gets its programs from the driver of the device: compile on such a machine "
            f"(ort-lite hw crossload --build-only {quote_argument(row.id)})"
        )
    if row.device != "NPU":
        which = "the CPU that it runs on" if row.device == "CPU" else f"a {row.device} at hand"
        return {}, (
            f"OpenVINO compiles for {which} alone: compile on such a machine "
            f"(ort-lite hw crossload --build-only {quote_argument(row.id)})"
        )
    platform = next((r.architecture for r in row.requires if r.architecture), "")
    if len(platform) != PLATFORM_DIGITS or not (platform.isascii() and platform.isdigit()):
        return {}, "the row requires no NPU platform as its architecture, such as '4000'"
    if not openvino:
        return {}, 'the openvino package is not installed: pip install "ort-lite[openvino]"'
    required = next((r.sdk for r in row.requires if r.sdk), "")
    if required and not is_within(openvino, required):
        return {}, f"needs OpenVINO {required}, found {openvino}"
    return {**row.options, "device_type": "NPU", "npu_platform": platform}, ""


def compiler_lacks(row: ExpandedRow, options: Mapping[str, str]) -> str:
    """Why the row's compiler does not start here; "" if it does."""
    try:
        open_provider(entries()[row.ep], options).release()
    except OrtLiteError as exc:
        return " ".join(exc.message.split())
    return ""


def compile_row(
    row: ExpandedRow,
    options: Mapping[str, str],
    models: Mapping[str, MatrixModel],
    root: Path,
    out: Path,
    progress: Callable[[str], None],
) -> CompiledRow:
    """Compile every model for a row.

    Args:
        row: Of the matrix.
        options: As `target_options` returns them.
        models: Of the matrix.
        root: The folder that paths of models are relative to.
        out: Where the row's folder goes.
        progress: Called with what is going on.
    """
    folder = out / row.folder
    folder.mkdir(parents=True, exist_ok=True)
    done = []
    for name, model in models.items():
        progress(f"{row.id}: {name}")
        try:
            done.append(_compile(name, model, row, options, root, folder))
        except OrtLiteError as exc:
            done.append(CompiledModel(model=name, problem=" ".join(exc.message.split())))
    return CompiledRow(row=row.id, target=f"NPU {options['npu_platform']}", models=tuple(done))


def write_fleet(result: FleetResult, out: Path) -> None:
    """Write fleet.json.

    Raises:
        Fail: It cannot be written; an earlier fleet.json stays.
    """
    write_report_file(out / FLEET_FILE, msgspec.json.format(msgspec.json.encode(result), indent=1))


def _compile(
    name: str,
    model: MatrixModel,
    row: ExpandedRow,
    options: Mapping[str, str],
    root: Path,
    folder: Path,
) -> CompiledModel:
    """Compile one model.

    Raises:
        OrtLiteError: As a session.
    """
    source, target = root / model.path, folder / f"{name}_ctx.onnx"
    if not source.is_file():
        return CompiledModel(model=name, problem=f"{model.path} does not exist")
    for old in folder.glob(f"{name}_ctx*"):
        old.unlink()
    settings = SessionOptions()
    for key, value in row.config.items():
        settings.add_session_config_entry(key, value)
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_session_config_entry("ep.context_file_path", str(target))
    chosen = {**options, **_shapes(model)}
    providers: Sequence[str | tuple[str, Mapping[str, str]]] = [(row.ep, chosen), CPU]
    with InferenceSession(source, settings, providers=providers, enable_fallback=0) as session:
        report = session.explain()
    if not target.is_file():
        return CompiledModel(
            model=name, problem="no node was compiled", left=_list_left(report, row.ep)
        )
    parts = [part for part in report.partitions if part.ep == row.ep]
    return CompiledModel(
        model=name,
        requirements=next((r for p in parts if (r := p.identity.get("requirements"))), ""),
        partitions=len(parts),
        taken=dict(sorted(Counter(n.op_type for p in parts for n in p.nodes).items())),
        left=_list_left(report, row.ep),
        files=tuple(_artifact(path, folder.parent) for path in sorted(folder.glob(f"{name}_ctx*"))),
    )


def _shapes(model: MatrixModel) -> dict[str, str]:
    """`reshape_input` with the shapes that the matrix feeds."""
    if isinstance(model.inputs, str) or not model.inputs:
        return {}
    shapes = (
        f"{name}[{','.join(map(str, spec.shape))}]"
        for name, spec in model.inputs.items()
        if spec.shape
    )
    return {"reshape_input": ",".join(shapes)}


def _list_left(report: SessionReport, ep: str) -> dict[str, tuple[int, str]]:
    """Operators that `ep` was offered and that run elsewhere."""
    left: dict[str, Any] = {}
    for part in report.partitions:
        for node in part.nodes:
            if ep in node.refusals:
                count, _ = left.get(node.op_type, (0, ""))
                left[node.op_type] = (count + 1, node.refusals[ep])
    return dict(sorted(left.items()))


def _artifact(path: Path, base: Path) -> Artifact:
    data = path.read_bytes()
    return Artifact(
        path=path.relative_to(base).as_posix(),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
