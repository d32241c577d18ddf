"""Lists the OpenCL devices of this machine."""

from __future__ import annotations

from eps.opencl.cl.loader import loader_note
from eps.opencl.runtime.device import find_devices
from eps.opencl.runtime.identity import read_identity
from eps.opencl.trials.trial import problem_of
from ort_lite.ep import DeviceInfo, EPFail, Probe


def probe_devices() -> Probe:
    """Every device that passes its trial."""
    try:
        note = loader_note()
    except EPFail as exc:
        return Probe(reason=exc.message)
    try:
        listed = find_devices()
    except EPFail as exc:
        return Probe(reason=exc.message, tried=(note,))
    problems = {one: problem_of(one) for one in listed}
    devices = tuple(
        DeviceInfo(
            name=one.name,
            kind=one.kind,
            description=one.label,
            identity=read_identity(one),
            options={"device": one.name},
            memory=one.device.global_mem_size,
            features=tuple(one.device.extensions.split()),
        )
        for one, problem in problems.items()
        if not problem
    )
    failing = "; ".join(filter(None, problems.values()))
    reason = failing if listed else "every OpenCL platform is without a device"
    return Probe(devices, reason, (f"OpenCL: {note}",))
