"""Runs a module as a program: `launch.py MODULE [ARGUMENT ...]`.

Importing the module uses its bytecode, which a script does not have: compiling a hundred lines
takes two milliseconds. `main` of the module receives the `perf_counter` at which this line ran.
"""

import sys
from time import perf_counter

began = perf_counter()
sys.path[0] = __file__.rsplit("benchmarks", 1)[0]
__import__(sys.argv[1])
sys.exit(sys.modules[sys.argv[1]].main(began, *sys.argv[2:]))
