"""Time that `session.ep_context_trust` adds to a start: whole processes, a small context.

python -m benchmarks.startup.trusted_context [TURNS]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from ort_lite.trust.private_keys import generate_key

ROOT = Path(__file__).parents[2]
EP = "OpenVINOExecutionProvider"
START = """
import time
began = time.perf_counter()
import ort_lite as ort
options = ort.SessionOptions()
if {trust!r}:
    options.add_session_config_entry("session.ep_context_trust", {trust!r})
ort.InferenceSession({model!r}, options, providers=[{ep!r}])
print(time.perf_counter() - began)
"""


def dense_model() -> onnx.ModelProto:
    """y = relu(x @ w), x [2, 256]."""
    weights = np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)
    shape = [2, 256]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"]),
            helper.make_node("Relu", ["xw"], ["y"]),
        ],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def seconds(model: Path, trust: str) -> float:
    """From the import of ort_lite to a session that is ready."""
    code = START.format(model=str(model), trust=trust, ep=EP)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(turns: int) -> None:
    """Print median and least time of both starts."""
    with TemporaryDirectory() as place:
        keys = generate_key(Path(place) / "key", None, force=False)
        options = ort.SessionOptions()
        options.add_session_config_entry("ep.context_sign_key", str(keys.private))
        options.add_provider(EP)
        model = Path(place) / "m_ctx.onnx"
        ort.ModelCompiler(options, dense_model().SerializeToString()).compile_to_file(model)
        trusts = {"without": "", "with": str(keys.public)}
        measured: dict[str, list[float]] = {name: [] for name in trusts}
        for _ in range(turns):
            for name, trust in trusts.items():
                measured[name].append(seconds(model, trust) * 1000)
    for name, times in measured.items():
        print(f"{name:>8}: median {median(times):.0f} ms, least {min(times):.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
