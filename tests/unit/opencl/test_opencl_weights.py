"""Weights: stored once, placed once on a device, read where they lie, given back at the end."""

from __future__ import annotations

import gc
import io
import mmap
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from device_models import NodeSet
from golden_kernels import CPU
from onnx import helper
from opencl_devices import device_names
from small_models import feed, model
from system_limits import needs_posix, needs_removal_while_open

import ort_lite as ort
from ctx_formats.container_reader import read_container
from eps.opencl import FACTORY
from eps.opencl.cl.objects import Context, Queue
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.program_spec import Weight, weight_of
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.device import find_devices
from eps.opencl.runtime.device_memory import DeviceWeights, address_of
from ort_lite.ep.interface import FusedNode, PartitionIo
from ort_lite.model import loader
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto

OPENCL = "OpenCLExecutionProvider"
PLATFORMS = device_names()
SIDE, COUNT = 512, 8
"""Weights of one model: 8 x 1 MiB."""


@pytest.fixture(params=PLATFORMS)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def chain(order: Sequence[int], activation: str) -> ModelProto:
    """MatMuls with the same weights in some order, an activation between them."""
    random = np.random.default_rng(5)
    scale = np.float32(SIDE**-0.5)
    weights = {
        f"w{i}": random.standard_normal((SIDE, SIDE)).astype(np.float32) * scale
        for i in range(COUNT)
    }
    nodes, value = [], "x"
    for at, i in enumerate(order):
        last = "y" if at == len(order) - 1 else f"a{i}"
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node(activation, [f"m{i}"], [last]))
        value = last
    return model(nodes, [("x", [2, SIDE])], [("y", [2, SIDE])], weights)


MODELS = {"one": (range(COUNT), "Relu"), "two": (range(COUNT)[::-1], "Tanh")}


@pytest.fixture(scope="module", params=PLATFORMS)
def group(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, dict[str, Any]]:
    """Folder of two models compiled as a group, the device, and what each model gives."""
    folder, device = tmp_path_factory.mktemp("group"), str(request.param)
    results = {}
    with ort.SharedContexts() as shared:
        for name, what in MODELS.items():
            proto = chain(*what)
            options = shared.join(ort.SessionOptions())
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_file_path", str(folder / f"{name}.onnx"))
            providers = [(OPENCL, {"device": device})]
            with ort.InferenceSession(proto.SerializeToString(), options, providers) as session:
                results[name] = session.run(None, feed(proto))[0]
    return folder, device, results


def test_weights_that_models_have_in_common_are_stored_once(
    group: tuple[Path, str, dict[str, Any]],
) -> None:
    (payload,) = group[0].glob("*.bin")
    found = read_container(memoryview(payload.read_bytes()))
    assert len(found.entries) == 2
    assert {entry.weights for entry in found.entries.values()} == {("0",)}
    assert COUNT << 20 <= found.weights["0"].size < 1.1 * (COUNT << 20)
    assert all(entry.size < 512 << 10 for entry in found.entries.values())


@pytest.mark.parametrize("weights", ["auto", "copy", "map"])
def test_they_come_back_bit_for_bit(group: tuple[Path, str, dict[str, Any]], weights: str) -> None:
    """In a group and alone; the sessions outlive the group."""
    folder, device, results = group
    providers = [(OPENCL, {"device": device, "weights": weights})]
    with ort.SharedContexts() as shared:
        options = shared.join(ort.SessionOptions())
        sessions = {
            name: ort.InferenceSession(folder / f"{name}.onnx", options, providers)
            for name in MODELS
        }
    sessions["one"].close()
    sessions["one"] = ort.InferenceSession(folder / "one.onnx", providers=providers)
    for name, session in sessions.items():
        found = session.run(None, feed(chain(*MODELS[name])))[0]
        np.testing.assert_array_equal(found, results[name])
        session.close()


class Sink:
    """Takes weights as a session group's file does."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def add_weights(self, data: memoryview) -> int:
        self.sizes.append(data.nbytes)
        return 0


def test_a_payload_with_shared_weights_needs_their_file() -> None:
    ep, sink, out = FACTORY.create({}), Sink(), io.BytesIO()
    proto = chain(range(1), "Relu").SerializeToString()
    whole = loader.resolve(loader.load(proto, ort.SessionOptions()).model, {})
    graph = whole.extract(range(len(whole.nodes)), "chain")
    (compiled,) = ep.compile([FusedNode(name="chain", graph=graph)])
    assert ep.export_shared(compiled, sink, out)  # type: ignore[attr-defined]
    compiled.release()
    assert len(sink.sizes) == 1
    declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
    with pytest.raises(InvalidGraph, match="in a shared file"):
        ep.import_model(memoryview(out.getvalue()), declared)  # type: ignore[attr-defined]


MEMORY = """
import mmap, re, sys
import numpy as np
import pyopencl as cl
from eps.opencl.cl.objects import Context
from eps.opencl.cl.objects import Context, Queue
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.device import find_devices
from eps.opencl.runtime.device_memory import DeviceWeights, address_of
from eps.opencl.program_spec import Weight

SIZE = 64 << 20
(found,) = [f for f in find_devices() if f.name == sys.argv[1]]
mine = Context(found.device)
context = cl.Context.from_int_ptr(mine.handle)
queue = cl.CommandQueue(context)
program = cl._cl._Program(context, '''
__kernel void total(__global const float* p, __global float* y) {
  float s = 0; for (int i = 0; i < 16384; ++i) s += p[get_global_id(0) * 16384 + i];
  y[get_global_id(0)] = s; }''')
program._build(b"", context.devices)
y = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
file = open(sys.argv[2], "rb")
data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

def anonymous():
    text = open("/proc/self/smaps_rollup").read()
    return int(re.search(r"^Anonymous:\\s+(\\d+) kB", text, re.M)[1]) << 10

def run(weights):
    (buffer,) = weights.hold([Weight("", data)])
    weights.wait_for_uploads()
    kernel = cl.Kernel(program, "total")
    kernel.set_args(cl.Buffer.from_int_ptr(buffer.handle), y)
    cl.enqueue_nd_range_kernel(queue, kernel, (1024,), (1,))
    result = np.empty(1024, np.float32)
    cl.enqueue_copy(queue, result, y)
    return result

alignment = describe_target(found).alignment
run(kept := DeviceWeights(mine, alignment, mapped=False))  # what the first launch takes
before = anonymous()
found = run(lent := DeviceWeights(mine, alignment, mapped=sys.argv[3] == "map"))
print(anonymous() - before)
assert np.allclose(found, np.frombuffer(data, np.float32).reshape(1024, -1).sum(1), rtol=1e-2)
"""


@needs_posix  # Wine shows /proc, but not of the process that asks
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no smaps_rollup here")
@pytest.mark.parametrize("how", ["map", "copy"])
def test_mapped_weights_take_no_memory_of_their_own(tmp_path: Path, device: str, how: str) -> None:
    """Where the device shares the host's memory; a copy shows up, so the measure is one."""
    (found,) = [f for f in find_devices() if f.name == device]
    if not found.device.host_unified_memory:
        pytest.skip("the device has memory of its own")
    path = tmp_path / "weights"
    path.write_bytes(np.random.default_rng(0).random(16 << 20, np.float32).tobytes())
    command = [sys.executable, "-W", "ignore", "-c", MEMORY, device, str(path), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    grown = int(done.stdout)
    assert grown > 60 << 20 if how == "copy" else grown < 8 << 20, grown


def test_a_device_holds_each_content_once_and_lets_it_go(device: str) -> None:
    (found,) = [f for f in find_devices() if f.name == device]
    context = Context(found.device)
    held = DeviceWeights(context, describe_target(found).alignment, mapped=False)
    first, second = (weight_of(memoryview(bytes([i]) * 5000)) for i in (1, 2))
    again = weight_of(memoryview(bytes([1]) * 5000))
    (a, b), (c,) = held.hold([first, second]), held.hold([again])
    held.wait_for_uploads()
    assert a is c
    found_bytes = np.zeros(5000, np.uint8)
    queue = Queue(context)
    queue.read(found_bytes, b)
    assert set(found_bytes) == {2}
    held.drop([first, second])
    queue.read(found_bytes, c)
    assert set(found_bytes) == {1}
    held.drop([again])
    assert not held._blocks


def test_weights_that_are_read_in_order_stay_where_they_are(device: str) -> None:
    """The others are copied: the device does not see later changes of the host's bytes."""
    (found,) = [f for f in find_devices() if f.name == device]
    if not found.device.host_unified_memory:
        pytest.skip("the device has memory of its own")
    context, size = Context(found.device), 1 << 14
    memory = mmap.mmap(-1, 2 * size)
    data = memoryview(memory)
    streamed, other = Weight("a", data[:size]), Weight("b", data[size:])
    alignment = describe_target(found).alignment
    held = DeviceWeights(context, alignment, mapped=False, maps_streams=True)
    assert held.missing_bytes([streamed, other], {"a"}) == size
    buffers = held.hold([streamed, other], {"a"})
    held.wait_for_uploads()
    data[:] = bytes([7]) * len(data)
    for buffer, value in zip(buffers, (7, 0), strict=True):
        content = np.ones(size, np.uint8)
        Queue(context).read(content, buffer)
        assert set(content) == {value}
    held.drop([streamed, other])


@pytest.mark.parametrize("op_type", ["MatMulNBits", "QMoE"])
def test_weights_of_few_bits_are_packed_where_a_device_can_read_them(op_type: str) -> None:
    """At the start of a page, so that a device that shares the host's memory makes no copy."""
    random, nodes = np.random.default_rng(7), NodeSet()
    if op_type == "QMoE":
        wide, narrow = (random.integers(0, 256, (3, 64, 32)).astype(np.uint8) for _ in range(2))
        scales = [np.ones((3, 64), np.float32) for _ in range(2)]
        x, scores = (np.ones((2, n), np.float32) for n in (64, 3))
        inputs = [x, scores, wide, scales[0], None, narrow, scales[1]]
        fixed: tuple[int, ...] = (2, 3, 5, 6)
        fields: dict[str, Any] = {"k": 1, "activation_type": "relu"}
    else:
        packed = random.integers(0, 256, (96, 2, 16)).astype(np.uint8)
        inputs = [np.ones((2, 64), np.float32), packed, np.ones((96, 2), np.float32)]
        fixed, fields = (1, 2), {"K": 64, "N": 96, "bits": 4, "block_size": 32}
    nodes.add(op_type, inputs, fixed, domain="com.microsoft", **fields)
    loaded = loader.load(nodes.model.SerializeToString(), ort.SessionOptions())
    graph = loader.resolve(loaded.model, {}).extract(range(1), "weights")
    shapes = {name: value.shape for name, value in nodes.feeds.items()}
    spec = compile_partition(graph, shapes, CPU)
    streamed = [w for w in spec.weights if w.digest in spec.stream_digests]
    assert streamed
    assert {address_of(weight.data) % 4096 for weight in streamed} == {0}


@needs_removal_while_open
def test_mapped_bytes_outlive_what_the_caller_drops(tmp_path: Path, device: str) -> None:
    """The device's buffer is who owns the map by then; without it the process would die."""
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * 4096)
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    path.unlink()
    (found,) = [f for f in find_devices() if f.name == device]
    context = Context(found.device)
    held = DeviceWeights(context, describe_target(found).alignment, mapped=True)
    (buffer,) = held.hold([weight_of(memoryview(data))])
    held.wait_for_uploads()
    del data
    gc.collect()
    content = np.zeros(256 * 4096, np.uint8)
    Queue(context).read(content, buffer)
    np.testing.assert_array_equal(content, np.tile(np.arange(256, dtype=np.uint8), 4096))
