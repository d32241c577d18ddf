"""Many small nodes in one model, run on a device and by onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

OPENCL = "OpenCLExecutionProvider"
OPSETS = {"": 21, "com.microsoft": 1}


class NodeSet:
    """Independent nodes; each gets inputs of its own."""

    def __init__(self, opset: int = OPSETS[""], provider: str = OPENCL) -> None:
        """Of an opset of ai.onnx, for an execution provider."""
        self.provider = provider
        imports = [helper.make_opsetid(d, opset if not d else v) for d, v in OPSETS.items()]
        graph = helper.make_graph([], "nodes", [], [])
        self.model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        self.feeds: dict[str, Array] = {}

    def add(
        self,
        op_type: str,
        inputs: Sequence[Array | str | None],
        fixed: Sequence[int] = (),
        outputs: int | Sequence[int] = 1,
        **attributes: Any,
    ) -> str:
        """Add a node, with initializers at the `fixed` positions; the name of its first output.

        An input that is a name is an output of an earlier node. `outputs` is how many are
        asked for, or which.
        """
        graph = self.model.graph
        name = f"{op_type}{len(graph.node)}"
        names = []
        for position, value in enumerate(inputs):
            if value is None or isinstance(value, str):
                names.append(value or "")
                continue
            names.append(f"{name}.{position}")
            if position in fixed:
                graph.initializer.append(numpy_helper.from_array(value, names[-1]))
            else:
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                graph.input.append(helper.make_tensor_value_info(names[-1], kind, value.shape))
                self.feeds[names[-1]] = value
        wanted = range(outputs) if isinstance(outputs, int) else outputs
        made = [f"{name}/{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
        graph.node.append(helper.make_node(op_type, names, made, name, **attributes))
        for output in filter(None, made):
            graph.output.add().name = output
        return next(filter(None, made))

    def refusals(self) -> dict[str, str]:
        """The reason for each node that does not run on the device."""
        with self._session() as session:
            nodes = [n for p in session.explain().partitions for n in p.nodes]
        return {n.name: n.refusals.get(self.provider, "") for n in nodes if n.ep != self.provider}

    def run(self, platform: str = "") -> list[Any]:
        """What the device gives; every node is on it."""
        return self.run_with({"platform": platform} if platform else {})

    def run_on(self, device: str, *, times: int = 1) -> list[Any]:
        """The same on a device; run several times, the results are equal bit for bit."""
        return self.run_with({"device": device}, times=times)

    def run_with(self, provider_options: dict[str, str], *, times: int = 1) -> list[Any]:
        """The same with options of the EP."""
        with self._session(provider_options) as session:
            nodes = [n for p in session.explain().partitions for n in p.nodes]
            assert {n.name: n.refusals for n in nodes if n.ep != self.provider} == {}
            found = session.run(None, self.feeds)
            for _ in range(times - 1):
                for again, first in zip(session.run(None, self.feeds), found, strict=True):
                    np.testing.assert_array_equal(again, first)
            return found

    def run_elsewhere(self) -> list[Any]:
        """What onnxruntime gives."""
        return onnxruntime.InferenceSession(
            self._bytes(), self._plain(), providers=["CPUExecutionProvider"]
        ).run(None, self.feeds)

    def check(
        self, *, platform: str = "", device: str = "", rtol: float = 1e-5, atol: float = 1e-6
    ) -> None:
        """Every node is on the device and gives what onnxruntime gives."""
        right = self.run_elsewhere()
        for info, value in zip(self.model.graph.output, right, strict=True):
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind, value.shape))
        found = self.run_on(device) if device else self.run(platform)
        for info, mine, theirs in zip(self.model.graph.output, found, right, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), info.name
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, err_msg=info.name)

    def _bytes(self) -> bytes:
        inferred = onnx.shape_inference.infer_shapes(self.model)
        return inferred.SerializeToString()

    @staticmethod
    def _plain() -> onnxruntime.SessionOptions:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return options

    def _session(self, provider_options: dict[str, str] | None = None) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.placement", "all")
        providers = [(self.provider, provider_options or {}), "CPUExecutionProvider"]
        return ort.InferenceSession(self._bytes(), options, providers=providers)
