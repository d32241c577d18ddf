"""`precision=fp16`: weights as halves where the device has the type, sums in float32."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from device_models import NodeSet
from onnx.reference import ReferenceEvaluator
from opencl_devices import all_devices

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime.device import HALF
from ort_lite.ep.interface import FusedNode, PartitionIo
from ort_lite.model import loader
from ort_lite.status import EPFail, InvalidArgument

FOUND = all_devices()
ABLE = [f.name for f in FOUND if HALF in f.device.extensions.split()]
UNABLE = [f.name for f in FOUND if f.name not in ABLE]


def network() -> NodeSet:
    """Convolutions of each kind and products; their weights are no halves."""
    nodes, random = NodeSet(), np.random.default_rng(3)

    def draw(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    x = draw(1, 16, 9, 11)
    nodes.add("Conv", [x, draw(24, 16, 3, 3), draw(24)], (1, 2), pads=[1, 1, 1, 1])
    nodes.add("Conv", [x, draw(6, 8, 1, 1)], (1,), group=2)
    nodes.add("Conv", [x, draw(16, 1, 3, 3)], (1,), group=16)
    nodes.add("ConvTranspose", [x, draw(16, 5, 2, 2)], (1,), strides=[2, 2])
    nodes.add("MatMul", [draw(2, 7, 100), draw(100, 33)], (1,))
    nodes.add("MatMul", [draw(2, 3), draw(3, 1)], (1,))
    nodes.add("Gemm", [draw(5, 40), draw(17, 40), draw(17)], (1, 2), transB=1)
    return nodes


@pytest.mark.parametrize("device", ABLE)
def test_sums_are_exact_with_the_rounded_weights(device: str) -> None:
    """The reference with those weights rounded: nothing else has lost a bit of float32."""
    nodes = network()
    plain = ReferenceEvaluator(nodes.model).run(None, nodes.feeds)
    found = nodes.run_with({"device": device, "precision": "fp16"})
    for tensor in nodes.model.graph.initializer:
        if len(tensor.dims) > 1 and list(tensor.dims[:2]) != [16, 1]:  # depthwise stays float32
            values = np.frombuffer(tensor.raw_data, np.float32)
            tensor.raw_data = values.astype(np.float16).astype(np.float32).tobytes()
    right = ReferenceEvaluator(nodes.model).run(None, nodes.feeds)
    for info, mine, rounded, exact in zip(
        nodes.model.graph.output, found, right, plain, strict=True
    ):
        np.testing.assert_allclose(mine, rounded, 1e-5, 2e-5, err_msg=info.name)
        np.testing.assert_allclose(mine, exact, 1e-2, 5e-2, err_msg=info.name)


@pytest.mark.parametrize("device", ABLE)
def test_a_payload_takes_half_the_room_and_loads_without_the_option(device: str) -> None:
    nodes = NodeSet()
    random = np.random.default_rng(0)
    x, w = (random.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    nodes.add("MatMul", [x, w], (1,))
    whole = loader.resolve(loader.load(nodes._bytes(), ort.SessionOptions()).model, {})
    graph = whole.extract(range(len(whole.nodes)), "product")
    sizes, results = {}, {}
    for precision in ("fp32", "fp16"):
        ep = FACTORY.create({"device": device, "precision": precision})
        (compiled,) = ep.compile([FusedNode(name="product", graph=graph)])
        out = io.BytesIO()
        ep.export_model(compiled, out)  # type: ignore[attr-defined]
        declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
        other = FACTORY.create({"device": device})
        again = other.import_model(memoryview(out.getvalue()), declared)  # type: ignore[attr-defined]
        sizes[precision] = len(out.getvalue())
        (results[precision],) = compiled.run([x])
        np.testing.assert_array_equal(again.run([x])[0], results[precision])
        for partition in (compiled, again):
            partition.release()
    assert sizes["fp32"] - sizes["fp16"] >= w.nbytes // 2
    assert not np.array_equal(results["fp32"], results["fp16"])


@pytest.mark.parametrize("device", ABLE)
def test_weights_beyond_the_range_of_halves_stay_as_they_are(device: str) -> None:
    nodes = NodeSet()
    w = np.full((8, 8), 1e6, np.float32)
    nodes.add("MatMul", [np.ones((2, 8), np.float32), w], (1,))
    (found,) = nodes.run_with({"device": device, "precision": "fp16"})
    np.testing.assert_array_equal(found, np.full((2, 8), 8e6, np.float32))


@pytest.mark.parametrize("device", UNABLE)
def test_a_device_without_halves_names_those_that_have_them(device: str) -> None:
    with pytest.raises(EPFail, match=f"needs a device with {HALF}") as error:
        FACTORY.create({"device": device, "precision": "fp16"})
    assert all(f"{name}: " in error.value.message for name in ABLE)


@pytest.mark.skipif(not ABLE, reason=f"no device here has {HALF}")
def test_without_a_device_named_one_that_has_halves_is_taken() -> None:
    ep = FACTORY.create({"precision": "fp16"})
    assert ep.identity in [d.identity for d in FACTORY.probe().devices if d.name in ABLE]
    ep.release()


def test_another_precision_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="expected one of fp32, fp16"):
        FACTORY.create({"precision": "int4"})
