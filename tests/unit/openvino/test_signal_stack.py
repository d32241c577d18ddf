"""A signal after sessions of OpenVINO's were closed reaches Python, in whatever order they were."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import gc, os, signal, sys, threading, time
import numpy as np
import onnx.parser
import ort_lite

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu (x) }'
MODEL = onnx.parser.parse_model(TEXT).SerializeToString()
X = np.array([-1, 0, 1, 2], np.float32)

def session(model=MODEL, **options):
    made = ort_lite.InferenceSession(model, providers=[("OpenVINOExecutionProvider", options)])
    assert made.run(None, {"x": X})[0].tolist() == [0, 0, 1, 2]
    return made

def context():
    options = ort_lite.SessionOptions()
    options.add_provider("OpenVINOExecutionProvider", {})
    compiler = ort_lite.ModelCompiler(options, MODEL, embed_compiled_data_into_model=True)
    return compiler.compile_to_bytes()

def elder_first():
    elder, younger = session(), session()
    elder.close()
    younger.close()

def another_thread():
    made = session()
    closing = threading.Thread(target=made.close)
    closing.start()
    closing.join()

def contexts():  # more configurations than are kept
    model = context()
    made = [session(model, num_of_threads=str(1 + i)) for i in range(6)]
    for each in made:
        each.close()

def another_group():
    made = [session(device_type="AUTO:CPU"), session(device_type="HETERO:CPU"), session()]
    for each in made:
        each.close()

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs behind & ignore it
globals()[sys.argv[1]]()
gc.collect()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("history", ["elder_first", "another_thread", "contexts", "another_group"])
def test_an_interrupt_is_heard_after(history: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, history], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "heard\n"), done.stderr
