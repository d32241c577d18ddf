"""Models in the ORT format, made by onnxruntime itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU = ["CPUExecutionProvider"]
NEVER = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def save_by_onnxruntime(proto: onnx.ModelProto, level: object = NEVER) -> bytes:
    """The `.ort` file that onnxruntime saves of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ort"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=CPU)
        return path.read_bytes()


def run_in_onnxruntime(
    data: bytes, feed: Mapping[str, np.ndarray], key: str = ""
) -> list[np.ndarray]:
    """What onnxruntime computes; `key` is a session option to set."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if key:
        options.add_session_config_entry(key, "1")
    return onnxruntime.InferenceSession(data, options, providers=CPU).run(None, feed)


def mixed() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model with bodies, omitted and variadic inputs, sequences, texts and doubles."""
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 3], producer_name: "tests",
         doc_string: "of the model", metadata_props: ["key": "value"]>
        mixed (float[2, N] x, bool c) => (float[2, M] y, float[2, 2] h, int64[2] best, float[K] s)
        <float[2] bias = {1.5, -2}, float[4, 2] w = {1, 0, 0.5, 2, 1, -1, 3, 0.25},
         float[4] scales = {1, 1, 2, 2}, int64[1] axis = {1}, float[3] t = {1, 2, 3}>
        {
          twice = Concat <axis = 1> (x, x, x)
          y = Clip (twice, , top)
          top = ReduceMax <keepdims = 0> (x)
          h = If (c) <
            then_branch = yes () => (float[2, 2] a) { p = MatMul (x, w)  a = Add (p, bias) },
            else_branch = no () => (float[2, 2] b) { q = MatMul (x, w)  b = Softmax (q) }
          >
          best = ArgMax <axis = 1, keepdims = 0> (x)
          list = SequenceConstruct (t, t)
          s = ConcatFromSequence <axis = 0> (list)
        }
        """
    )
    names = onnx.helper.make_tensor("names", onnx.TensorProto.STRING, [2], [b"a\0b", "é".encode()])
    proto.graph.initializer.append(names)
    shape = onnx.helper.make_node("Shape", ["names"], ["n"], name="shape")
    proto.graph.node.append(shape)
    proto.graph.output.append(onnx.helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [1]))
    doubles = numpy_helper.from_array(np.arange(3.0), "doubles")
    proto.graph.initializer.append(doubles)
    proto.graph.node.append(onnx.helper.make_node("Neg", ["doubles"], ["d"], name="neg"))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("d", onnx.TensorProto.DOUBLE, [3]))
    feed = {
        "x": np.linspace(-2, 3, 8, dtype=np.float32).reshape(2, 4),
        "c": np.ones((), np.bool_),
    }
    return proto, feed


def with_version(data: bytes, text: str, *, resolver: bool = True) -> bytes:
    """A file of onnxruntime with another version text, perhaps without its resolver."""
    changed = bytearray(data)
    root = int.from_bytes(data[:4], "little")
    fields = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    place = root + int.from_bytes(data[fields + 4 : fields + 6], "little")
    string = place + int.from_bytes(data[place : place + 4], "little")
    encoded = text.encode()
    # A new string at the end of the file, which may have bytes behind its tables.
    changed += bytes(-len(changed) % 4)
    changed[place : place + 4] = (len(changed) - place).to_bytes(4, "little")
    changed += len(encoded).to_bytes(4, "little") + encoded + bytes(4 - len(encoded) % 4)
    assert data[string : string + 5] == b"\1\0\0\0" + b"6", "onnxruntime 1.31.1 writes version 6"
    if not resolver:
        changed[fields + 10 : fields + 12] = bytes(2)
    return bytes(changed)
