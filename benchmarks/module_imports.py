"""One process of start_profile.py: `launch.py module_imports FIRST FILE`.

Imports the modules that FILE names, one a line, in that order, with nothing going on beside it;
with "numpy" for FIRST after numpy. Python's own come first, then other packages', then ours, so
that none pays for another's.

Prints a JSON object as one_start.py does, with the seconds of each group in `steps`.
"""

import sys
from time import perf_counter

OURS = ("ctx_formats", "eps", "ort_lite")


def main(started: float, first: str, file: str) -> int:
    """Import them, say how long it took."""
    if first == "numpy":
        import numpy as np  # noqa: F401, PLC0415 - see one_start
    with open(file, encoding="utf-8") as listed:  # noqa: PTH123 - pathlib is no program's import
        names = listed.read().split()
    groups: dict[str, list[str]] = {"python": [], "packages": [], "ours": []}
    for name in names:
        top = name.partition(".")[0]
        standard = top in sys.stdlib_module_names
        groups["python" if standard else "ours" if top in OURS else "packages"].append(name)
    steps = {}
    began = perf_counter()
    for group, members in groups.items():
        for name in members:
            __import__(name)
        ended = perf_counter()
        steps[group] = ended - began
        began = ended
    from told import tell  # noqa: PLC0415 - after the clock

    tell(1, started=started, at=began, steps={**steps, "modules": sum(steps.values())})
    return 0
