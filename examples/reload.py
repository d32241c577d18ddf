"""Checks a compiled model against this machine and runs it: `reload.py CONTEXT`."""

import sys

import numpy as np

import ort_lite as ort

verdicts = ort.check_compatibility(sys.argv[1])
for verdict in verdicts:
    print(verdict)

session = ort.InferenceSession(sys.argv[1], providers=["OpenVINOExecutionProvider"])
feed = {
    node.name: np.zeros([size if isinstance(size, int) else 1 for size in node.shape], np.float32)
    for node in session.get_inputs()
}
for node, value in zip(session.get_outputs(), session.run(None, feed), strict=True):
    print(node.name, np.shape(value))
print(session.load_report())
