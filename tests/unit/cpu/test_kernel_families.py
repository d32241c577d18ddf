"""Kernels of the CPU EP are imported by operator, by a table that says what the modules say."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from cpu_kernels import all_kernels

import eps.cpu.kernels
from eps.cpu.kernels import OwnKernels
from eps.cpu.kernels.families import FAMILIES
from ort_lite.ep.kernels import KernelCall
from ort_lite.kernel_type_str import KernelTypeStrResolver, OpIdentifier

FOLDER = Path(eps.cpu.kernels.__file__).parent
ROOT = FOLDER.parents[2]
ANY_TYPE = KernelTypeStrResolver()


@pytest.mark.parametrize("name", sorted(p.stem for p in FOLDER.glob("*.py")))
def test_the_table_has_the_operators_of_each_module(name: str) -> None:
    module = importlib.import_module(f"eps.cpu.kernels.{name}")
    found: dict[str, set[str]] = {}
    for definition in getattr(module, "KERNELS", ()):
        found.setdefault(definition.domain, set()).add(definition.op_type)
    told = {domain: " ".join(sorted(operators)) for domain, operators in found.items()}
    assert FAMILIES.get(name, {}) == told


def test_operators_are_told_without_importing_kernels() -> None:
    everything = {(k.domain, k.op_type) for k in all_kernels()}
    assert OwnKernels("CPU").operators() == tuple(sorted(everything))


def test_kernels_of_two_modules_come_in_the_order_of_the_table() -> None:
    assert OwnKernels("CPU").since_versions("", "ThresholdedRelu") == tuple(
        k.since[0] for k in all_kernels() if (k.domain, k.op_type) == ("", "ThresholdedRelu")
    )


def test_many_threads_may_ask_for_one_operator() -> None:
    own = OwnKernels("CPU")
    found: list[int] = []
    call = KernelCall(op=OpIdentifier("", "Relu", 14))

    def ask() -> None:
        found.append(len(own.search(call, ANY_TYPE).kernels))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert found[0] > 0


def test_a_session_imports_the_kernels_of_its_operators_alone() -> None:
    code = """
import sys
import numpy as np
import onnx.parser
import ort_lite
text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
model = onnx.parser.parse_model(text).SerializeToString()
session = ort_lite.InferenceSession(model, providers=["CPUExecutionProvider"])
assert session.run(None, {"x": np.array([-1, 1], np.float32)})[0].tolist() == [0, 1]
print(*(name.rpartition(".")[2] for name in sys.modules if name.startswith("eps.cpu.kernels.")))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split()) & FAMILIES.keys()
    assert {n for n in imported if "Relu" in FAMILIES[n].get("", "").split()}
    assert imported.isdisjoint({"rnn", "ml_tree", "contrib_attention", "resize", "conv"})
