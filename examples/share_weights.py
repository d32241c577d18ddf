"""Compiles models into one payload file, common weights once: `share_weights.py MODEL ...`."""

import sys
from pathlib import Path

import ort_lite as ort

options = ort.SessionOptions()
options.add_provider("OpenVINOExecutionProvider")
with ort.SharedContexts() as group:  # the files appear when the block ends
    group.join(options)
    contexts = [f"{Path(model).stem}_shared.onnx" for model in sys.argv[1:]]
    for model, context in zip(sys.argv[1:], contexts, strict=True):
        ort.ModelCompiler(options, model).compile_to_file(context)

with ort.SharedContexts() as group:
    options = group.join(ort.SessionOptions())
    sessions = [ort.InferenceSession(context, options) for context in contexts]
print(len(sessions), "sessions from", sorted(path.name for path in Path.cwd().glob("*.bin")))
