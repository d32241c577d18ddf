"""Every OpenCL kernel generator under oclgrind: accesses out of bounds, data races, wrong numbers.

    python tests/parity/check_oclgrind.py          # a random case for each operator: minutes
    python tests/parity/check_oclgrind.py --quick  # fewer operators and families: what pytest runs

Needs Debian's package oclgrind (21.10 tried); says so and does nothing where it is missing, which
is a failure with --required: .ci/oclgrind installs it first. Each
family of templates, CPUs' by width of vector and GPUs' by size of work-group, is drawn and run in a
process of its own, each tensor in a buffer of its own. A barrier that not all items of a group meet
is reported, too.
That oclgrind sees a fault at all is shown by a kernel that has both kinds. Its check for
uninitialised values is not used: it reports vector functions that are given only known values,
and crashes in them (a softmax is enough).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

FOLDERS = (Path(__file__).parent, Path(__file__).parent.parent)
sys.path[:0] = [str(folder) for folder in FOLDERS]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.target import Target

LIBRARIES = ("/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/lib64/oclgrind/liboclgrind-rt-icd.so")
MISSING = "oclgrind is not installed, nothing was checked: apt-get install oclgrind"
ACCUMULATORS = {4: 12, 8: 12, 16: 28}
"""Floats in a vector to vectors in registers, as `describe_target` has them."""
FAMILIES = ("cpu-4", "cpu-8", "cpu-16", "gpu-64", "gpu-256", "gpu-registers-64")
QUICK_FAMILIES = ("cpu-8", "gpu-64")
"""Values of provider option `templates`, each with the vector's width or the group's size."""

QUICK = (
    "Conv", "ConvTranspose", "MatMul", "Softmax", "LayerNormalization", "ReduceSum", "Gather",
    "QLinearConv", "MatMulInteger",
)  # fmt: skip
LARGEST_SHOWN = 4000
FAULTY = """
__kernel void faulty(__global int* x) {
  x[get_global_id(0) / 2] = get_global_id(0);
  if (get_global_id(0) == 5) x[64] = 1;
}
"""


def library() -> Path | None:
    """The driver that oclgrind is."""
    return next((Path(path) for path in LIBRARIES if Path(path).is_file()), None)


def run_under_oclgrind(arguments: Sequence[str], driver: Path) -> tuple[str, dict[str, Any]]:
    """What oclgrind reported, and what the child printed; raises if the child died."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "oclgrind.icd").write_text(f"{driver}\n")
        log = Path(folder) / "log"
        settings = {
            "OCL_ICD_VENDORS": folder,
            "OCLGRIND_DATA_RACES": "1",
            "OCLGRIND_LOG": str(log),
            "OCLGRIND_MAX_ERRORS": "20",
        }
        command = [sys.executable, "-W", "ignore", __file__, "--child", *arguments]
        done = subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return log.read_text(errors="replace").strip(), json.loads(done.stdout)


def check(driver: Path, families: Sequence[str], names: Sequence[str]) -> list[str]:
    """Everything that is wrong, a text each."""
    reported, _ = run_under_oclgrind(["faulty"], driver)
    wrong = [
        f"oclgrind does not see a fault of this kind: {kind}"
        for kind in ("Invalid write", "data race")
        if kind not in reported
    ]
    for family in families:
        reported, found = run_under_oclgrind([family, *names], driver)
        sys.stderr.write(f"{family}: {found['outputs']} results\n")
        wrong += [f"{family}: {text}" for text in found["wrong"]]
        wrong += [f"{family}: {reported[:LARGEST_SHOWN]}"] if reported else []
    return wrong


def run_faulty_kernel() -> dict[str, Any]:
    """A write after the end, and one that two work-items race for."""
    import pyopencl as cl  # noqa: PLC0415 - in the child only

    from eps.opencl.runtime.device import find_devices  # noqa: PLC0415 - in the child only

    context = cl.Context([cl.Device.from_int_ptr(_oclgrind(find_devices()).device.handle)])
    program = cl.Program(context, FAULTY).build()
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64 * 4)
    with cl.CommandQueue(context) as queue:
        cl.Kernel(program, "faulty")(queue, (64,), (1,), buffer)
    return {}


def _oclgrind(found: Sequence[Any]) -> Any:
    return next(one for one in found if "Oclgrind" in one.platform.name)


def run_operators(family: str, names: set[str]) -> dict[str, Any]:
    """Each operator's case with a family's templates; results that are not the reference's."""
    import numpy as np  # noqa: PLC0415 - in the child only
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - in the child only
    from separate_buffers import separate_tensors  # noqa: PLC0415 - in the child only
    from test_opencl_operators import WITHOUT_REFERENCE, sets  # noqa: PLC0415 - in the child only

    from eps.opencl import provider  # noqa: PLC0415 - in the child only
    from eps.opencl.runtime.device import find_devices  # noqa: PLC0415 - in the child only

    separate_tensors()
    plain = provider.describe_target  # type: ignore[attr-defined] # patched where it is used
    templates, _, number = family.rpartition("-")
    size = int(number)

    def described(*asked: Any) -> Target:
        target = plain(*asked)
        if target.groups is None:
            return replace(target, vector=size, accumulators=ACCUMULATORS[size], winograd=True)
        return replace(target, groups=replace(target.groups, size=size))

    provider.describe_target = described  # type: ignore[attr-defined, assignment] # as above
    device, outputs, wrong = _oclgrind(find_devices()).name, 0, []
    for nodes in sets(names, seeds=range(1)):
        mine = nodes.run_with({"device": device, "templates": templates})
        judged = not {n.op_type for n in nodes.model.graph.node} & WITHOUT_REFERENCE
        right = ReferenceEvaluator(nodes.model).run(None, nodes.feeds) if judged else mine
        pairs = zip(nodes.model.graph.output, mine, right, strict=True)
        wrong += [o.name for o, a, b in pairs if not np.allclose(a, b, 1e-4, 2e-5, equal_nan=True)]
        outputs += len(mine)
    if "Conv" in names and templates == "cpu":
        wrong += run_winograd(device)
        outputs += 1
    return {"outputs": outputs, "wrong": wrong}


def run_winograd(device: str) -> list[str]:
    """A convolution that transforms pay for, which the operator's own case is too small for."""
    import numpy as np  # noqa: PLC0415 - in the child only
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - in the child only
    from winograd_models import convolution, draw  # noqa: PLC0415 - in the child only

    import ort_lite as ort  # noqa: PLC0415 - in the child only

    shape = (2, 37, 13, 15)
    proto, feed = (
        convolution(shape, 43, (1, 0, 2, 1)),
        {"x": draw(np.random.default_rng(1), *shape)},
    )
    providers = [("OpenCLExecutionProvider", {"device": device, "templates": "cpu"})]
    with ort.InferenceSession(proto.SerializeToString(), providers=providers) as session:
        (found,) = session.run(None, feed)
        notes = [note for part in session.explain().partitions for note in part.notes]
    (right,) = ReferenceEvaluator(proto).run(None, feed)
    near = np.allclose(found, right, rtol=0, atol=1e-5 * float(np.abs(right).max()))
    return [] if near and any("Winograd" in note for note in notes) else [f"Winograd: {notes}"]


def main() -> int:
    """Exit status 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--required", action="store_true", help="fail where oclgrind is missing")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        first, *names = arguments.child
        found = run_faulty_kernel() if first == "faulty" else run_operators(first, set(names))
        sys.stdout.write(json.dumps(found))
        return 0
    driver = library()
    if driver is None:
        sys.stderr.write(f"{MISSING}\n")
        return 1 if arguments.required else 0
    from operator_cases import WRITERS  # noqa: PLC0415 - a child reads it itself

    names = QUICK if arguments.quick else sorted(WRITERS)
    wrong = check(driver, QUICK_FAMILIES if arguments.quick else FAMILIES, names)
    sys.stdout.write("\n".join(wrong or ["no fault found"]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
