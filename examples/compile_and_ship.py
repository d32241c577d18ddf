"""Compiles a model for OpenVINO and writes the files to ship: `compile_and_ship.py MODEL`."""

import sys
from pathlib import Path

import ort_lite as ort

options = ort.SessionOptions()
options.add_provider("OpenVINOExecutionProvider", {"device_type": "CPU"})
compiler = ort.ModelCompiler(options, sys.argv[1])
compiler.set_progress_func(lambda name, done, total: print(f"{done}/{total} {name}"))
compiler.compile_to_file("shipped.onnx")

for path in sorted(Path.cwd().glob("shipped*")):
    print(f"{path.name}: {path.stat().st_size:,} bytes")
