"""One start of a session, timed from inside: `python -m ort_lite.start.timed_start JSON`.

The argument is {began, model, config, providers, dimensions, policy, feed}: `began` is the parent's
`perf_counter`, which on Linux counts for all processes alike; `feed` an .npz file, or "". Prints
one JSON object: what `LoadReport.to_json` gives, with what came before and after the session
in its phases, which add up to `ready_s`.
"""

from __future__ import annotations

from time import perf_counter

STARTED = perf_counter()

TYPE_CHECKING = False  # typing itself takes a millisecond to import
if TYPE_CHECKING:
    from ort_lite.session import InferenceSession


def main(request_json: str) -> int:
    """Make the session, run it once, print what it took."""
    import json  # noqa: PLC0415 - lazy: reload
    import sys  # noqa: PLC0415 - lazy: reload

    from ort_lite.options import SessionOptions  # noqa: PLC0415 - lazy: reload
    from ort_lite.session import InferenceSession  # noqa: PLC0415 - lazy: reload

    request = json.loads(request_json)
    options = SessionOptions()
    for key, value in request["config"].items():
        options.add_session_config_entry(key, value)
    for name, size in request["dimensions"].items():
        options.add_free_dimension_override_by_name(name, size)
    if request["policy"]:
        from ort_lite.providers.device_policy import find_policy  # noqa: PLC0415 - lazy: rare

        options.set_provider_selection_policy(find_policy(request["policy"]))
    made_of = (request["model"], options, request["providers"])
    with InferenceSession(*made_of, enable_fallback=0) as session:
        opened = perf_counter()
        if request["feed"]:
            _run(session, request["feed"])
        ready = perf_counter()
        report = session.load_report().to_json()
    phases = {"interpreter": STARTED - request["began"], **report["phases_s"]}
    phases["imports"] += opened - STARTED - report["total_s"]  # imports of this module, too
    if request["feed"]:
        phases["feed"] = ready - opened - phases["first run"]
        phases["first run"] = phases.pop("first run")
    report["phases_s"] = phases
    report["ready_s"] = ready - request["began"]
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


def _run(session: InferenceSession, path: str) -> None:
    import numpy as np  # noqa: PLC0415 - lazy: reload

    with np.load(path) as arrays:
        session.run(None, {name: arrays[name] for name in arrays.files})


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1]))
