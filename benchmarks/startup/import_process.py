"""One process of breakdown.py, started by launch.py: FIRST BESIDE FILE.

Imports the modules that FILE names, one a line; with "numpy" for FIRST after numpy. Python's own
come first, then other packages', then ours, so that none pays for another's. With "libraries" for
BESIDE a thread loads OpenVINO meanwhile, as floor_process.py's does, and is waited for; with "-"
nothing goes on beside it.

Prints a JSON object as first_answer_process.py does, with the seconds of each group in `steps`, and
of all.
"""

import sys
from time import perf_counter

OURS = ("ctx_formats", "eps", "ort_lite")


def main(started: float, first: str, overlapped: str, file: str) -> int:
    """Import them, say how long it took."""
    from benchmarks.startup.floor_process import Opening, run_overlapped  # noqa: PLC0415 - as above

    if first == "numpy":
        import numpy as np  # noqa: F401, PLC0415 - see first_answer_process
    groups = _read_groups(file)
    steps: dict[str, float] = {}
    began = perf_counter()
    if overlapped == "libraries":
        run_overlapped(Opening("", "-").load, lambda: _import_all(groups, steps))
    else:
        _import_all(groups, steps)
    at = perf_counter()
    from benchmarks.harness.process_result import send_result  # noqa: PLC0415 - after the clock

    send_result(1, started=started, at=at, steps={**steps, "modules": at - began})
    return 0


def _read_groups(file: str) -> "dict[str, list[str]]":
    with open(file, encoding="utf-8") as listed:  # noqa: PTH123 - importing pathlib would be counted
        names = listed.read().split()
    groups: dict[str, list[str]] = {"python": [], "packages": [], "ours": []}
    for name in names:
        top = name.partition(".")[0]
        standard = top in sys.stdlib_module_names
        groups["python" if standard else "ours" if top in OURS else "packages"].append(name)
    return groups


def _import_all(groups: "dict[str, list[str]]", steps: "dict[str, float]") -> None:
    began = perf_counter()
    for group, members in groups.items():
        for name in members:
            __import__(name)
        ended = perf_counter()
        steps[group] = ended - began
        began = ended
