"""Runs a module of this folder as a program: `launch.py MODULE [ARGUMENT ...]`.

From its bytecode, which a script has none of: compiling a hundred lines takes two milliseconds.
`main` of the module is told the `perf_counter` at which Python began with this one.
"""

import sys
from time import perf_counter

sys.exit(__import__(sys.argv[1]).main(perf_counter(), *sys.argv[2:]))
