"""Are the weights that two models have in common stored once, and held in memory once?

Two models over one weights file of `--megabytes` are compiled as a session group; the size of the
payload file is compared with that of one model alone. Then a process loads both context models in
a group, runs them, and reads from /proc/self/smaps (Linux only) which pages of the payload file
it has: `Rss` counts a page for every map of it, `Pss` shares a page out among its maps. What a
process has once, however many maps it has of it, is in the sum of `Pss`.

Targets: the file at most 1.2 times that of one model; the resident pages of the payload file, by
`Pss`, at most 1.2 times its weights with two sessions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

import ort_lite as ort
from benchmarks.harness.conditions import conditions

MODULE = "benchmarks.memory.weight_sharing"
EP = "OpenVINOExecutionProvider"
TARGET = 1.2
ROWS = 1024


def main() -> int:
    """Measure and print; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100, help="of weights (%(default)s)")
    parser.add_argument("--json", type=Path, help="write every measurement there")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        what, folder = arguments.child
        print(json.dumps(CHILDREN[what](Path(folder))))
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        weights = write_models(folder, arguments.megabytes)
        one, two = (_ask(what, folder) for what in ("alone", "group"))
        pages = _ask("load", folder)
    report = {
        "weights_bytes": weights,
        "alone_bytes": one["bytes"],
        "group_bytes": two["bytes"],
        "file_ratio": two["bytes"] / one["bytes"],
        **pages,
        "memory_ratio": pages["pss_two"] / weights,
    }
    print(conditions(), end="")
    print(f"one model   {one['bytes'] / 1e6:>9.1f} MB of payload file")
    print(f"two models  {two['bytes'] / 1e6:>9.1f} MB: ratio {report['file_ratio']:.3f}")
    for count in ("one", "two"):
        rss, pss = pages[f"rss_{count}"] / 1e6, pages[f"pss_{count}"] / 1e6
        print(f"{count} loaded  {pss:>9.1f} MB of its pages resident, mapped as {rss:.1f} MB")
    print(f"memory ratio to the weights {report['memory_ratio']:.3f}; targets {TARGET}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return int(max(report["file_ratio"], report["memory_ratio"]) > TARGET)


def _ask(what: str, folder: Path) -> dict[str, int]:
    command = [sys.executable, "-m", MODULE, "--child", what, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answer: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return answer


def write_models(folder: Path, megabytes: int) -> int:
    """Two chains of products over the same matrices in w.data; the weights' bytes.

    The first ends with Relu, the second with Tanh.
    """
    count = max(1, megabytes * 1_000_000 // (4 * ROWS * ROWS))
    names = [f"w{i}" for i in range(count)]
    random = np.random.default_rng(1)
    with (folder / "w.data").open("wb") as out:
        for _ in names:
            scaled = random.standard_normal((ROWS, ROWS), dtype=np.float32) / np.sqrt(ROWS)
            scaled.astype(np.float32).tofile(out)
    for model, last in (("a", "Relu"), ("b", "Tanh")):
        nodes = [
            helper.make_node("MatMul", [f"h{i}" if i else "x", name], [f"h{i + 1}"])
            for i, name in enumerate(names)
        ]
        nodes.append(helper.make_node(last, [f"h{count}"], ["y"]))
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, ROWS])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, ROWS])
        tensors = [_external_tensor(name, i) for i, name in enumerate(names)]
        graph = helper.make_graph(nodes, model, [x], [y], tensors)
        opset = [helper.make_opsetid("", 17)]
        made = helper.make_model(graph, opset_imports=opset, ir_version=10)
        save(made, folder / f"{model}.onnx")
    return count * 4 * ROWS * ROWS


def _external_tensor(name: str, index: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[ROWS, ROWS])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.data"), ("offset", index * 4 * ROWS * ROWS)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def compile_alone(folder: Path) -> dict[str, int]:
    """One model with a payload file of its own, weights inside."""
    options = ort.SessionOptions()
    options.add_provider(EP)
    ort.ModelCompiler(options, folder / "a.onnx").compile_to_file(folder / "alone.onnx")
    return {"bytes": (folder / f"alone_{EP}.bin").stat().st_size}


def compile_group(folder: Path) -> dict[str, int]:
    """Both models into one payload file."""
    options = ort.SessionOptions()
    options.add_provider(EP)
    with ort.SharedContexts() as group:
        group.join(options)
        for model in ("a", "b"):
            compiler = ort.ModelCompiler(options, folder / f"{model}.onnx")
            compiler.compile_to_file(folder / f"both_{model}.onnx")
    return {"bytes": (folder / f"both_a_{EP}.bin").stat().st_size}


def load(folder: Path) -> dict[str, int]:
    """Pages of the payload file that one session has, and then two."""
    feed = {"x": np.ones((1, ROWS), np.float32)}
    memory: dict[str, int] = {}
    sessions = []
    with ort.SharedContexts() as group:
        for count, name in (("one", "both_a"), ("two", "both_b")):
            options = group.join(ort.SessionOptions())
            session = ort.InferenceSession(folder / f"{name}.onnx", options, providers=[EP])
            session.run(None, feed)
            sessions.append(session)
            rss, pss = resident(f"both_a_{EP}.bin")
            memory |= {f"rss_{count}": rss, f"pss_{count}": pss}
    for session in sessions:
        session.close()
    return memory


def resident(name: str) -> tuple[int, int]:
    """`Rss` and `Pss` in bytes of this process's maps of a file, from proc_pid_smaps(5)."""
    rss = pss = 0
    ours = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        key, _, rest = line.partition(" ")
        if not key.endswith(":"):
            ours = rest.endswith(name)
        elif ours and key == "Rss:":
            rss += int(rest.split()[0]) * 1024
        elif ours and key == "Pss:":
            pss += int(rest.split()[0]) * 1024
    return rss, pss


CHILDREN = {"alone": compile_alone, "group": compile_group, "load": load}

if __name__ == "__main__":
    sys.exit(main())
