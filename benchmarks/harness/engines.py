"""The engines that are compared: each opens a model, plain or compiled, and runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.harness.engine_programs import FLOAT32, PLUGIN_FLOAT32, cpu_devices

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EP = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"


class AbsentError(Exception):
    """An engine cannot run here; says why."""


class Engine(ABC):
    """One way of running a model on the CPU; its constructor imports what it needs.

    Attributes:
        contexts: Kinds of compiled model that it keeps, each with a file name's suffix.
    """

    contexts: ClassVar[Mapping[str, str]] = {"external": ".onnx", "embedded": ".onnx"}

    @abstractmethod
    def open(self, model: Path) -> Any:  # noqa: ANN401 - each engine's own session
        """A session with onnxruntime's `run`."""

    @abstractmethod
    def write_context(self, model: Path, target: Path, *, embed: bool) -> None:
        """Compile `model` and write the context model `target`."""


class OrtLite(Engine):
    """ort_lite with its OpenVINO execution provider."""

    providers: ClassVar[tuple[str, ...]] = (EP,)

    def __init__(self) -> None:
        import ort_lite  # noqa: PLC0415 - one engine a process, and nothing of the others

        self._ort = ort_lite

    def open(self, model: Path) -> Any:  # noqa: ANN401 - see Engine
        """See Engine."""
        return self._ort.InferenceSession(model, self._options(), providers=self.providers)

    def _options(self) -> Any:  # noqa: ANN401 - ort_lite is imported by the constructor
        return self._ort.SessionOptions()

    def write_context(self, model: Path, target: Path, *, embed: bool) -> None:
        """See Engine."""
        options = self._ort.SessionOptions()
        for key, value in context_entries(target, embed=embed).items():
            options.add_session_config_entry(key, value)
        self._ort.InferenceSession(model, options, providers=self.providers).close()


class OrtLiteCpu(OrtLite):
    """ort_lite with nothing but its own CPU kernels."""

    contexts: ClassVar[Mapping[str, str]] = {}
    providers: ClassVar[tuple[str, ...]] = (CPU,)


class OrtLiteCpuParallel(OrtLiteCpu):
    """The same in ORT_PARALLEL, with as many threads as cores for nodes."""

    def _options(self) -> Any:  # noqa: ANN401 - see OrtLite
        options = super()._options()
        options.execution_mode = self._ort.ExecutionMode.ORT_PARALLEL
        return options


class OrtLiteCpuNodes(OrtLiteCpuParallel):
    """The same, with one thread for each matrix product."""

    def _options(self) -> Any:  # noqa: ANN401 - see OrtLite
        options = super()._options()
        options.intra_op_num_threads = 1
        return options


class OrtLiteOpenCl(OrtLite):
    """ort_lite with its OpenCL execution provider on the device that it chooses by default."""

    providers: ClassVar[tuple[str, ...]] = ("OpenCLExecutionProvider",)


class OnnxRuntime(Engine):
    """onnxruntime with its CPU execution provider, which keeps no contexts."""

    contexts: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        import onnxruntime  # noqa: PLC0415 - see OrtLite

        onnxruntime.set_default_logger_severity(3)
        self._ort = onnxruntime

    def open(self, model: Path) -> Any:  # noqa: ANN401 - see Engine
        """See Engine."""
        return self._ort.InferenceSession(str(model), providers=[CPU])

    def write_context(self, model: Path, target: Path, *, embed: bool) -> None:
        """See Engine."""
        raise AbsentError(f"onnxruntime's {CPU} keeps no context of {model}: no {target}, {embed=}")


class OnnxRuntimeOpenVino(Engine):
    """onnxruntime with Intel's plug-in execution provider, onnxruntime-ep-openvino, in float32."""

    def __init__(self) -> None:
        import onnxruntime  # noqa: PLC0415 - see OrtLite
        import onnxruntime_ep_openvino  # noqa: PLC0415 - see OrtLite

        onnxruntime.set_default_logger_severity(3)
        library = onnxruntime_ep_openvino.get_library_path()
        onnxruntime.register_execution_provider_library(EP, library)
        self._ort = onnxruntime
        self._devices = cpu_devices(onnxruntime)
        if not self._devices:
            raise AbsentError(
                "onnxruntime-ep-openvino lists no CPU device here: it takes Intel's CPUs only"
            )

    def _options(self) -> Any:  # noqa: ANN401 - onnxruntime has no type information
        options = self._ort.SessionOptions()
        options.add_provider_for_devices(self._devices, PLUGIN_FLOAT32)
        return options

    def open(self, model: Path) -> Any:  # noqa: ANN401 - see Engine
        """See Engine."""
        return self._session(model, self._options())

    def write_context(self, model: Path, target: Path, *, embed: bool) -> None:
        """See Engine."""
        options = self._options()
        for key, value in context_entries(target, embed=embed).items():
            options.add_session_config_entry(key, value)
        self._session(model, options)

    def _session(self, model: Path, options: Any) -> Any:  # noqa: ANN401 - see _options
        from onnxruntime.capi.onnxruntime_pybind11_state import EPFail  # noqa: PLC0415 - see OrtLite

        try:
            return self._ort.InferenceSession(str(model), options)
        except EPFail as exc:
            raise AbsentError(f"onnxruntime-ep-openvino refuses {model.stem}") from exc


class RawOpenVino(Engine):
    """The openvino package alone, in float32: what nothing on top of it can beat."""

    contexts: ClassVar[Mapping[str, str]] = {"external": ".blob"}

    def __init__(self) -> None:
        import numpy as np  # noqa: PLC0415 - see OrtLite
        import openvino  # noqa: PLC0415 - see OrtLite

        self._core = openvino.Core()
        self._tensor = openvino.Tensor
        self._map = np.memmap

    def open(self, model: Path) -> RawSession:
        """A plain model, or a payload that `write_context` left."""
        if model.suffix == ".onnx":
            compiled = self._compile(model)
        else:
            # Copy on write: OpenVINO refuses maps that are read-only.
            mapped = self._tensor(self._map(model, mode="c"))
            compiled = self._core.import_model(mapped, "CPU", FLOAT32)
        return RawSession(compiled, self._tensor)

    def write_context(self, model: Path, target: Path, *, embed: bool) -> None:  # noqa: ARG002 - see Engine
        """The bare payload; `embed` means nothing to it."""
        target.write_bytes(self._compile(model).export_model().getbuffer())

    def _compile(self, model: Path) -> Any:  # noqa: ANN401 - the SDK's own type
        try:
            return self._core.compile_model(str(model), "CPU", FLOAT32)
        except RuntimeError as exc:  # what OpenVINO raises for a model it cannot convert
            raise AbsentError(f"openvino alone refuses {model.stem}") from exc


class OnnxReference(Engine):
    """onnx.reference: what a model means, operator by operator in Python."""

    contexts: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - see OrtLite

        self._evaluator = ReferenceEvaluator

    def open(self, model: Path) -> Any:  # noqa: ANN401 - see Engine
        """See Engine."""
        try:
            return ReferenceSession(self._evaluator(str(model)), model.stem)
        except RuntimeError as exc:  # what it raises for an operator that it lacks
            raise AbsentError(f"onnx.reference lacks an operator of {model.stem}") from exc

    def write_context(self, model: Path, target: Path, *, embed: bool) -> None:
        """See Engine."""
        raise AbsentError(f"onnx.reference keeps no context of {model}: no {target}, {embed=}")


class ReferenceSession:
    """An evaluator that says it cannot where it fails."""

    def __init__(self, evaluator: Any, name: str) -> None:  # noqa: ANN401 - untyped here
        self._evaluator = evaluator
        self._name = name

    def run(self, names: None, feed: dict[str, Any]) -> list[Any]:
        """All outputs."""
        try:
            outputs: list[Any] = self._evaluator.run(names, feed)
        except (LookupError, RuntimeError, TypeError, ValueError) as exc:
            raise AbsentError(f"onnx.reference fails on {self._name}: {exc}") from exc
        return outputs


class RawSession:
    """A compiled model with its request; input tensors are set once and only inferred after."""

    def __init__(self, compiled: Any, tensor: Any) -> None:  # noqa: ANN401 - the SDK's own types
        self._compiled = compiled
        self._request = compiled.create_infer_request()
        self._tensor = tensor
        self._feed: object = None

    def run(self, names: None, feed: dict[str, Any]) -> list[Any]:  # noqa: ARG002 - onnxruntime's
        """All outputs, as views of the request's memory."""
        self.infer(feed)
        return [self._request.get_tensor(port).data for port in self._compiled.outputs]

    def infer(self, feed: dict[str, Any]) -> None:
        """Compute, and leave the outputs where they are."""
        if self._feed is not feed:
            for name, array in feed.items():
                self._request.set_tensor(name, self._tensor(array, shared_memory=True))
            self._feed = feed
        self._request.infer()


def context_entries(target: Path, *, embed: bool) -> dict[str, str]:
    """The session configuration that writes a context model; the same for all."""
    return {
        "ep.context_enable": "1",
        "ep.context_file_path": str(target),
        "ep.context_embed_mode": "1" if embed else "0",
    }


OURS, OURS_CPU, OURS_OPENCL = "ort_lite", "ort_lite[CPU]", "ort_lite[OpenCL]"
OURS_PARALLEL, OURS_NODES = "ort_lite[CPU, parallel]", "ort_lite[CPU, parallel, one BLAS thread]"
PEER, PEER_CPU, RAW = "onnxruntime+openvino", "onnxruntime[CPU]", "openvino"
REFERENCE = "onnx.reference"
ENGINES: dict[str, type[Engine]] = {
    OURS: OrtLite,
    OURS_CPU: OrtLiteCpu,
    OURS_PARALLEL: OrtLiteCpuParallel,
    OURS_NODES: OrtLiteCpuNodes,
    OURS_OPENCL: OrtLiteOpenCl,
    PEER: OnnxRuntimeOpenVino,
    PEER_CPU: OnnxRuntime,
    RAW: RawOpenVino,
    REFERENCE: OnnxReference,
}
