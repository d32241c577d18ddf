"""`python -m ort_lite.as_onnxruntime`: start a program with the stand-in."""

import sys

from ort_lite.as_onnxruntime.command import main

sys.exit(main(sys.argv[1:]))
