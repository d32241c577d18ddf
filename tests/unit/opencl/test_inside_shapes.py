"""Free dimensions without a name, of values that another EP makes between partitions on OpenCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser
from opencl_devices import device_names

import ort_lite as ort
from eps.opencl.runtime import program

if TYPE_CHECKING:
    from pathlib import Path

OPENCL, CPU = "OpenCLExecutionProvider", "CPUExecutionProvider"
DEVICE = device_names()[0]
SANDWICH = """<ir_version: 8, opset_import: ["" : 17]>
sandwich (float[n, 3, h, w] x, float[n, 2, gh, gw] g) => (float[n, 3, oh, ow] y) {
  pooled = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
  coarse = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (g)
  grid = Transpose <perm = [0, 2, 3, 1]> (coarse)
  sampled = GridSample (pooled, grid)
  halved = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (sampled)
  y = Sigmoid (halved)
}"""
"""OpenCL has no kernels for GridSample, so that what follows has an input of [n, 3, ?, ?]."""
COUNTED = """<ir_version: 8, opset_import: ["" : 17]>
counted (float[n] x) => (float[1, count] y) {
  places = NonZero (x)
  floats = Cast <to = 1> (places)
  y = Sigmoid (floats)
}"""


def feed(n: int, side: int, grid: int) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(side)
    return {
        "x": random.standard_normal((n, 3, side, side + 4)).astype(np.float32),
        "g": random.uniform(-0.9, 0.9, (n, 2, grid, grid + 2)).astype(np.float32),
    }


def proto_of(text: str) -> bytes:
    return parser.parse_model(text).SerializeToString()


def session_of(
    text: str, config: ort.SessionOptions | None = None, **options: str
) -> ort.InferenceSession:
    providers = [(OPENCL, {"device": DEVICE, **options}), CPU]
    entries = config or ort.SessionOptions()
    entries.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(proto_of(text), entries, providers=providers)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sources that the driver's compiler gets."""
    sources: list[str] = []
    real = program.build

    def build(context: Any, source: str, options: str) -> Any:
        sources.append(source)
        return real(context, source, options)

    monkeypatch.setattr(program, "build", build)
    return sources


def nodes_by_ep(session: ort.InferenceSession) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for part in session.explain().partitions:
        found.setdefault(part.ep, set()).update(node.op_type for node in part.nodes)
    return found


def test_a_partition_behind_another_ep_gets_its_shapes_in_each_run(builds: list[str]) -> None:
    right = onnxruntime.InferenceSession(proto_of(SANDWICH), providers=[CPU])
    with session_of(SANDWICH) as session:
        placed = nodes_by_ep(session)
        assert placed[CPU] == {"GridSample"}
        assert placed[OPENCL] == {"MaxPool", "AveragePool", "Transpose", "Sigmoid"}
        for values in (feed(2, 12, 20), feed(1, 8, 16), feed(2, 12, 20)):
            (mine,) = session.run(None, values)
            (expected,) = right.run(None, values)
            np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-5)
        behind = [
            p for p in session.explain().partitions if "Sigmoid" in {n.op_type for n in p.nodes}
        ]
        parts = [p for p in session.explain().partitions if p.ep == OPENCL]
        assert behind[0].notes[0].startswith("2 of at most")
    assert len(builds) == 2 * len(parts)


def test_shapes_that_depend_on_data_stay_with_the_next_ep() -> None:
    right = onnxruntime.InferenceSession(proto_of(COUNTED), providers=[CPU])
    with session_of(COUNTED) as session:
        assert nodes_by_ep(session) == {CPU: {"NonZero", "Cast", "Sigmoid"}}
        (part,) = session.explain().partitions
        reasons = {n.op_type: n.refusals[OPENCL] for n in part.nodes}
        assert "may depend on data" in reasons["Cast"]
        values = {"x": np.array([1, 0, 2, 3], np.float32)}
        np.testing.assert_allclose(
            session.run(None, values)[0], right.run(None, values)[0], rtol=1e-6
        )


def test_partitions_inside_a_model_are_compiled_ahead_for_the_shapes_of_its_inputs(
    tmp_path: Path, builds: list[str]
) -> None:
    """And a session of the context builds nothing for them."""
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(tmp_path / "c.onnx"))
    values = feed(2, 12, 20)
    shapes = ",".join(f"{k}[{','.join(map(str, v.shape))}]" for k, v in values.items())
    with session_of(SANDWICH, config, reshape_input=shapes) as session:
        made = len(builds)
        (expected,) = session.run(None, values)
        assert len(builds) == made == sum(p.ep == OPENCL for p in session.explain().partitions)
    providers = [(OPENCL, {"device": DEVICE}), CPU]
    with ort.InferenceSession(tmp_path / "c.onnx", providers=providers) as session:
        np.testing.assert_array_equal(session.run(None, values)[0], expected)
    assert len(builds) == made


def test_a_size_that_reshape_input_leaves_out_is_not_guessed(builds: list[str]) -> None:
    with session_of(SANDWICH, reshape_input="x[2,3,12,16]") as session:
        parts = [p for p in session.explain().partitions if p.ep == OPENCL]
        behind = [p for p in parts if "Sigmoid" in {n.op_type for n in p.nodes}]
        assert behind[0].notes[0].endswith("none yet")
