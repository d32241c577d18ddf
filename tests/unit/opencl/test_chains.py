"""One launch runs many short kernels of a program, on Intel's CPU runtime."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from opencl_devices import all_devices

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from eps.opencl import FACTORY
from eps.opencl.compile import compile_partition
from eps.opencl.compile.codegen import divide_chains
from eps.opencl.compile.codegen.chains import MOST_WORK, find_chains
from eps.opencl.compile.codegen.kernel import Kernel
from eps.opencl.compile.views import Storage
from eps.opencl.payload.format import read_payload
from eps.opencl.payload.table import decode_spec, encode_spec
from eps.opencl.runtime import chains as runtime_chains
from eps.opencl.runtime import describe_target
from ort_lite.ep.interface import FusedNode, PartitionIo
from ort_lite.model import loader
from ort_lite.options import SessionOptions
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.model.graph import Graph

OPENCL = "OpenCLExecutionProvider"
LAYERS = 6
STEP = """
  p{0} = MatMul (h{0}, w)
  s{0} = Softmax <axis = -1> (p{0})
  h{1} = Add (s{0}, h{0})"""
TEXT = f"""<ir_version: 8, opset_import: ["" : 17]>
layers (int64[6] i, float[40, 24] table, float[24, 24] w) => (float[6, 24] h{LAYERS}) {{
  h0 = Gather <axis = 0> (table, i){"".join(STEP.format(n, n + 1) for n in range(LAYERS))}
}}"""
MODEL = parser.parse_model(TEXT)
INTEL = [
    found.name
    for found in all_devices()
    if found.kind == "CPU" and found.platform.vendor.startswith("Intel")
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    loaded = loader.load(MODEL.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "layers")


@pytest.fixture(params=INTEL)
def device(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def feed(seed: int = 6, index: int = 39) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    table, w = (random.standard_normal(shape).astype("f4") for shape in ((40, 24), (24, 24)))
    return {"i": np.array([0, 7, 3, 3, 21, index], np.int64), "table": table, "w": w}


def values(graph: Graph, given: dict[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    return [given[info.name] for info in graph.inputs]


def compiled(graph: Graph, device: str) -> tuple[Any, Any]:
    """The EP, and the partition that it made."""
    ep: Any = FACTORY.create({"device": device})
    (partition,) = ep.compile([FusedNode(name="layers", graph=graph)])
    return ep, partition


def without_chains(monkeypatch: pytest.MonkeyPatch, graph: Graph, device: str) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(compile_partition, "find_chains", lambda _: ())
        _, partition = compiled(graph, device)
    return partition


def test_a_chain_computes_what_its_kernels_do_to_the_bit(
    graph: Graph, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, one = compiled(graph, device)
    many = without_chains(monkeypatch, graph, device)
    assert one.executable.spec.chains == ((0, len(one.executable.spec.calls)),)
    assert not many.executable.spec.chains
    assert len(one.executable._launches) == 1
    assert len(many.executable._launches) == len(many.executable.spec.calls)
    for seed in range(20):
        given = feed(seed)
        (mine,), (other,) = one.run(values(graph, given)), many.run(values(graph, given))
        np.testing.assert_array_equal(mine, other)
        (right,) = ReferenceEvaluator(MODEL).run(None, given)
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("items", [1, 64])
def test_any_number_of_items_runs_a_chain(
    items: int, graph: Graph, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One does everything; of many, most find nothing left to do."""
    monkeypatch.setattr(runtime_chains, "ITEMS_OF_A_CORE", items)
    _, partition = compiled(graph, device)
    (right,) = ReferenceEvaluator(MODEL).run(None, feed())
    for _ in range(20):
        (mine,) = partition.run(values(graph, feed()))
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-5)


def test_items_that_leave_at_once_leave_the_chain_to_others(
    graph: Graph, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eps.opencl.compile.codegen.chains.MOST_WAITS", 0)
    _, partition = compiled(graph, device)
    (right,) = ReferenceEvaluator(MODEL).run(None, feed())
    for _ in range(50):
        (mine,) = partition.run(values(graph, feed()))
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-5)


def test_a_bad_index_in_a_chain_is_an_error(graph: Graph, device: str) -> None:
    _, partition = compiled(graph, device)
    with pytest.raises(InvalidArgument, match="out of the range"):
        partition.run(values(graph, feed(index=40)))
    (right,) = ReferenceEvaluator(MODEL).run(None, feed())
    np.testing.assert_allclose(partition.run(values(graph, feed()))[0], right, 1e-5, 1e-5)


def test_a_payload_keeps_chains(graph: Graph, device: str) -> None:
    ep, partition = compiled(graph, device)
    out = io.BytesIO()
    ep.export_model(partition, out)
    declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
    restored = ep.import_model(memoryview(out.getvalue()), declared)
    assert restored.executable.spec.chains == partition.executable.spec.chains
    assert len(restored.executable._launches) == 1
    given = values(graph, feed())
    np.testing.assert_array_equal(restored.run(given)[0], partition.run(given)[0])


SIZES = (24, 40, 16, 56)
STAGES = parser.parse_model(
    """<ir_version: 8, opset_import: ["" : 17]>
stages (float[6, 24] x0, float[24, 40] w0, float[40, 16] w1, float[16, 56] w2)
  => (float[6, 56] x3) {
"""
    + "\n".join(
        f"""  p{n} = MatMul (x{n}, w{n})
  s{n} = Softmax <axis = -1> (p{n})
  t{n} = Transpose <perm = [1, 0]> (s{n})
  l{n} = Softmax <axis = -1> (t{n})
  r{n} = ReduceMax <axes = [1], keepdims = 1> (l{n})
  d{n} = Sub (l{n}, r{n})
  x{n + 1} = Transpose <perm = [1, 0]> (d{n})"""
        for n in range(3)
    )
    + "\n}"
)


def stages_feed() -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(3)
    shapes = {"x0": (6, 24), "w0": (24, 40), "w1": (40, 16), "w2": (16, 56)}
    return {name: random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}


@pytest.fixture
def stages() -> Graph:
    """A partition whose kernels have other sizes in each stage."""
    loaded = loader.load(STAGES.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "stages")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles divide programs of any size in two."""
    monkeypatch.setattr(divide_chains, "LETTERS_OF_A_PART", 1)
    monkeypatch.setattr(describe_target, "_usable_cores", lambda: 2)


@pytest.mark.usefixtures("small_parts")
def test_chains_are_cut_where_other_functions_begin(
    stages: Graph, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part is a program of its own, which may be built alongside the others."""
    ep, partition = compiled(stages, device)
    executable = partition.executable
    spec, calls = executable.spec, len(executable.spec.calls)
    assert len(spec.parts) == len(executable.programs) == len(spec.chains) == 2
    (_, cut), (again, end) = spec.chains
    assert (again, end) == (cut, calls)
    assert spec.parts_of_chains == (0, 1)
    assert len(executable._launches) == 2
    given = stages_feed()
    (right,) = ReferenceEvaluator(STAGES).run(None, given)
    whole = without_chains(monkeypatch, stages, device)
    (mine,), (other,) = partition.run(values(stages, given)), whole.run(values(stages, given))
    np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(mine, other)
    out = io.BytesIO()
    ep.export_model(partition, out)
    declared = PartitionIo(inputs=stages.inputs, outputs=stages.outputs)
    restored = ep.import_model(memoryview(out.getvalue()), declared)
    assert (restored.executable.spec.chains, len(restored.executable._launches)) == (spec.chains, 2)
    np.testing.assert_array_equal(restored.run(values(stages, given))[0], mine)


@pytest.mark.usefixtures("small_parts")
def test_a_chain_over_two_parts_is_refused(stages: Graph, device: str) -> None:
    ep, partition = compiled(stages, device)
    executable = partition.executable
    executable.spec = replace(executable.spec, chains=((0, len(executable.spec.calls)),))
    assert executable.spec.parts_of_chains == (None,)
    out = io.BytesIO()
    ep.export_model(partition, out)
    with pytest.raises(FormatError, match="a chain of functions in two parts"):
        read_payload(memoryview(out.getvalue()), 128)


COST = dict.fromkeys("abcdef", "x" * 20_000)
NEEDED = {name: frozenset(name) for name in COST}


@pytest.mark.parametrize(
    ("calls", "most", "ranges"),
    [
        ("abcdef", 1, []),
        ("abcdef", 2, [(0, 3), (3, 6)]),
        ("abcdef", 3, [(0, 1), (1, 3), (3, 6)]),
        ("aabbccdd", 2, [(0, 4), (4, 8)]),
        ("ababab", 2, []),
        ("abcdabcde", 2, []),  # the last function alone would be a part: too little is saved
        ("abcadef", 2, [(0, 4), (4, 7)]),
        ("a", 4, []),
    ],
)
def test_calls_of_one_function_are_in_one_range(
    calls: str, most: int, ranges: list[tuple[int, int]]
) -> None:
    found = divide_chains.divide_calls(calls, NEEDED, COST, most)
    assert found == ranges


def test_functions_that_both_ranges_need_are_counted_in_both() -> None:
    needed = {name: frozenset((name, "f")) for name in "abcde"}
    costly = {**COST, "f": "x" * 300_000}
    assert divide_chains.divide_calls("abcde", needed, costly, 2) == []


def test_a_call_between_two_cuts_is_a_launch_of_its_own() -> None:
    ranges = [(0, 4), (4, 7), (7, 9)]
    assert divide_chains.cut_chains([(1, 5), (5, 9)], ranges) == ((1, 4), (5, 7), (7, 9))
    assert divide_chains.cut_chains([(1, 5)], []) == ((1, 5),)


def session_on(device: str, **options: Any) -> ort.InferenceSession:
    chosen = ort.SessionOptions()
    for key in ("session.placement", "session.use_env_allocators"):
        if key in options:
            chosen.add_session_config_entry(key, options.pop(key))
    providers = [(OPENCL, {"device": device, **options})]
    return ort.InferenceSession(MODEL.SerializeToString(), chosen, providers=providers)


def test_tensors_of_the_users_take_the_place_of_the_arena_in_a_chain(device: str) -> None:
    """Bound, bound to others, released, and not bound any more."""
    entries = {"session.placement": "all"}
    with session_on(device, **entries) as session:
        for seed in (1, 2, 3):
            given = feed(seed)
            (right,) = ReferenceEvaluator(MODEL).run(None, given)
            binding = session.io_binding()
            for name, value in given.items():
                held = session.create_ortvalue_from_shape_and_type(value.shape, value.dtype)
                held.update_inplace(value)
                binding.bind_ortvalue_input(name, held)
            binding.bind_output(f"h{LAYERS}", "opencl", 0)
            for _ in range(3):
                session.run_with_iobinding(binding)
                (found,) = binding.get_outputs()
                np.testing.assert_allclose(found.numpy(), right, rtol=1e-5, atol=1e-5)
            del held, binding, found
            np.testing.assert_allclose(session.run(None, given)[0], right, rtol=1e-5, atol=1e-5)


def test_sessions_with_chains_share_an_arena(device: str) -> None:
    entries = {"session.placement": "all", "session.use_env_allocators": "1"}
    (right,) = ReferenceEvaluator(MODEL).run(None, feed())
    with session_on(device, **entries) as one, session_on(device, **entries) as other:
        for session in (one, other, one):
            np.testing.assert_allclose(session.run(None, feed())[0], right, 1e-5, 1e-5)


def test_runs_that_go_on_after_the_call_have_a_launch_for_each_kernel(device: str) -> None:
    """The driver keeps a tensor for a kernel that has it as an argument; chains have addresses."""
    found = next(
        one
        for one in ort.get_ep_devices()
        if one.ep_name == OPENCL and one.ep_options["device"] == device
    )
    stream = found.create_sync_stream()
    options = {"session.placement": "all", "command_queue": str(stream.get_handle())}
    with session_on(device, **options) as session:
        (partition,) = session._present().prepared.partitions
        executable: Any = partition.compiled.executable  # type: ignore[attr-defined]
        assert executable.spec.chains
        assert len(executable._launches) == len(executable.spec.calls)
        (right,) = ReferenceEvaluator(MODEL).run(None, feed())
        np.testing.assert_allclose(session.run(None, feed())[0], right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"chains": [[0, 99]]}, "chain.end"),
        ({"chains": [[3, 3]]}, "chain.end"),
        ({"chains": [[0, 4], [3, 6]]}, "chain.begin"),
        ({"chains": [[0]]}, "list of 2"),
        ({"chains": [["0", 4]]}, "chain.begin"),
        ({"chains": 7}, "list of any number"),
        ({"entry": False}, "none without an entry"),
    ],
)
def test_forged_chains_are_refused(
    change: dict[str, object], problem: str, graph: Graph, device: str
) -> None:
    _, partition = compiled(graph, device)
    spec = partition.executable.spec
    table = encode_spec(spec)
    again = decode_spec(table, spec.source, spec.weights, 128)
    assert again.chains == spec.chains
    with pytest.raises(FormatError, match=problem):
        decode_spec({**table, **change}, spec.source, spec.weights, 128)


def storage(size: int) -> Storage:
    return Storage(size, "float32")


SHORT = Kernel("", (storage(8), storage(8), storage(8)), 2)
LARGE = replace(SHORT, operands=(storage(1 << 20), *SHORT.operands))
LONG = replace(SHORT, work=2 * MOST_WORK + 2)


@pytest.mark.parametrize(
    ("kernels", "chains"),
    [
        ([SHORT] * 9, ((0, 9),)),
        ([SHORT] * 8, ()),
        ([*[SHORT] * 6, LONG, *[SHORT] * 6], ((0, 6), (7, 13))),
        ([*[SHORT] * 9, LONG, SHORT], ((0, 9),)),
        ([SHORT, LONG] * 9, ()),
        ([*[SHORT] * 9, *[LONG] * 20], ()),
        ([replace(SHORT, group=2)] * 9, ()),
        ([replace(SHORT, include="user.h")] * 9, ()),
        ([replace(SHORT, operands=SHORT.operands[:2])] * 9, ()),
        ([LARGE] * 9, ()),
        ([replace(LARGE, label="cache_")] * 9, ((0, 9),)),
        ([*[SHORT] * 9, replace(LONG, work=1 << 40)], ()),
        ([], ()),
    ],
)  # fmt: skip
def test_chains_are_short_kernels_that_follow_each_other(
    kernels: Sequence[Kernel], chains: tuple[tuple[int, int], ...]
) -> None:
    assert find_chains(kernels) == chains
