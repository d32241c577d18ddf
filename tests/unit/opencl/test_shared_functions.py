"""Kernels that differ in integer literals alone are one function of a program with an entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from opencl_devices import all_devices

from ctx_formats.lean_dataclass import replace
from eps.opencl import FACTORY
from eps.opencl.compile.codegen import shared_functions
from eps.opencl.compile.codegen.kernel import Kernel
from eps.opencl.compile.codegen.shared_functions import share_functions
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.runtime.describe_target import describe_target
from ort_lite.ep.interface import FusedNode
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from eps.opencl.program_spec import ProgramSpec
    from ort_lite.model.graph import Graph

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
stack (float[1, 24, 24, 20] x) => (float[1, 24, 6, 5] y)
<float[24, 24, 1, 1] a, float[48, 24, 1, 1] b, float[24, 48, 1, 1] c, float[24, 24, 3, 3] d,
 float[48, 24, 3, 3] e, float[24, 48, 3, 3] f, float[24, 24, 3, 3] g> {
  a1 = Conv (x, a)
  b1 = Conv (a1, b)
  b2 = Sigmoid (b1)
  c1 = Conv (b2, c)
  d1 = Conv <pads = [1, 1, 1, 1]> (c1, d)
  e1 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (d1, e)
  e2 = Sigmoid (e1)
  f1 = Conv <pads = [1, 1, 1, 1]> (e2, f)
  y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (f1, g)
}"""
DEVICES = all_devices()
INTEL = [d for d in DEVICES if describe_target(d).one_entry]
KERNEL = re.compile(r"^    case \d+: (\w+)\((.*)\); break;$", re.MULTILINE)


def convolutions() -> Any:
    """1x1 and 3x3 convolutions of several widths, with random weights."""
    proto = parser.parse_model(TEXT)
    random = np.random.default_rng(3)
    for value in proto.graph.value_info:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weights = (random.standard_normal(shape) / 8).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(weights, value.name))
    del proto.graph.value_info[:]
    return proto


def graph_of(proto: Any) -> Graph:
    loaded = loader.load(proto.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "stack")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(convolutions())


def spec_of(graph: Graph) -> ProgramSpec:
    """The program for any device with one entry; no driver is asked."""
    target = replace(
        describe_target(DEVICES[0], "cpu"), one_entry=True, calls_builtins=False,
        winograd=False, vector=8, accumulators=12,
    )  # fmt: skip
    return compile_partition(graph, {"x": (1, 24, 24, 20)}, target)


def test_a_program_has_fewer_functions_than_kernels(graph: Graph) -> None:
    spec = spec_of(graph)
    calls = KERNEL.findall(spec.source)
    functions = {name for name, _ in calls}
    assert len(calls) == len(spec.functions)
    assert len(functions) < len(calls)
    runs_chains = 2 if spec.chains else 0  # functions for them
    noinline = spec.source.count("__attribute__((noinline))")
    assert noinline == len(functions) + runs_chains
    assert spec_of(graph).source == spec.source


def kernel(body: str, label: str = "product_") -> Kernel:
    return Kernel(body, (), tasks=1, label=label, written=0)


def padded(body: str) -> str:
    return body + "\n  // " + "-" * shared_functions.FEWEST_LETTERS


def with_literals(text: str, literals: tuple[int, ...]) -> str:
    """The function's body as it is called, its parameters replaced and its sums computed."""
    body = text[text.index("{\n") + 2 : text.rindex("\n}")]
    for index in reversed(range(len(literals))):
        body = re.sub(rf"\bliteral{index}\b", str(literals[index]), body)
    return re.sub(r"\((\d+(?: [*+-] \d+)+|\d+)\)", lambda m: str(eval(m[1])), body)  # noqa: S307 - digits


@pytest.mark.parametrize("seed", range(40))
def test_calls_of_a_function_compute_each_body_as_it_was(seed: int) -> None:
    random = np.random.default_rng(seed)
    bodies = {}
    for index in range(int(random.integers(2, 6))):
        stride, more, other = (int(n) for n in random.integers(1, 2000, 3))
        bodies[f"product_{index}"] = padded(
            f"  for (int k = 0; k < {other}; k += 4) {{\n"
            f"    x = p[{stride}] + p[{2 * stride}] * p[{2 * stride + 3}] - p[{stride + more}];\n"
            f"    y = 0.{other}f * 1.5e{other % 30}f + {other}u + v{other}_1.s0;\n  }}"
        )
    kernels = {name: kernel(body) for name, body in bodies.items()}
    texts, calls = share_functions(kernels)
    assert list(calls) == list(kernels)
    for name, call in calls.items():
        assert with_literals(texts[call.function], call.literals) == bodies[name]


def test_multiples_of_a_stride_are_computed_from_one_parameter() -> None:
    kernels = {
        f"k{s}": kernel(padded(f"  x = p[{s}] + p[{s + 1}] + p[{2 * s}] + p[{3 * s + 2}];"))
        for s in (100, 240, 1000)
    }
    texts, calls = share_functions(kernels)
    (text,) = texts.values()
    assert "p[literal0] + p[(literal0 + 1)] + p[(literal0 * 2)] + p[(literal0 * 3 + 2)]" in text
    assert [call.literals for call in calls.values()] == [(100,), (240,), (1000,)]


@pytest.mark.parametrize(
    "line",
    [
        "  float sums[%d];",
        "  float x[3], sums[%d];",
        "  float f[%d] __attribute__((aligned(64)));",
        "  __private char rows[8 * %d + 4], more[2];",
        "  float8 sums[3][%d];",
        "  #pragma unroll %d",
        "  __builtin_prefetch(p, 0, %d);",
        "  x = 300000000%d;",
    ],
)
def test_literals_that_have_to_be_constants_keep_functions_apart(line: str) -> None:
    bodies = [padded((line % n) + "\n  y = 7;") for n in (1, 2)]
    texts, calls = share_functions({f"k{i}": kernel(body) for i, body in enumerate(bodies)})
    assert len(texts) == 2
    assert [call.literals for call in calls.values()] == [(), ()]


def test_short_bodies_stay_apart() -> None:
    texts, _ = share_functions({f"k{n}": kernel(f"  x = y % {n};") for n in (3, 5)})
    assert sorted(texts) == ["k3", "k5"]


@pytest.mark.skipif(not INTEL, reason="no OpenCL device runs programs with one entry")
def test_shared_functions_compute_the_same_bits(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(5).standard_normal((1, 24, 24, 20)).astype(np.float32)
    results, counts = [], []
    for fewest in (shared_functions.FEWEST_LETTERS, 1 << 30):
        monkeypatch.setattr(shared_functions, "FEWEST_LETTERS", fewest)
        ep: Any = FACTORY.create({"device": INTEL[0].name, "winograd": "false"})
        (partition,) = ep.compile([FusedNode(name="stack", graph=graph)])
        results.append(partition.run([x])[0])
        counts.append(partition.executable.spec.source.count("__attribute__((noinline))"))
        partition.release()
        ep.release()
    assert counts[0] < counts[1]
    np.testing.assert_array_equal(*results)
    (expected,) = ReferenceEvaluator(convolutions()).run(None, {"x": x})
    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-4)
