"""ONNX Runtime with Intel's OpenVINO plug-in, in a process of its own; started by peer.py.

Reads a request as JSON from argv[1] and prints an answer as JSON. Two OpenVINO libraries of
one name (the wheel's and the plug-in's) do not meet this way.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as binding

LIBRARY = "openvino"
FLOAT32 = {"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'}
"""The plug-in computes in bfloat16 on CPUs that can, whatever its option `precision` says."""


def devices() -> list[Any]:
    """The plug-in's CPU device, where it lists one; AUTO is the same device again."""
    import onnxruntime_ep_openvino  # noqa: PLC0415 - where the plug-in is asked for alone

    ort.register_execution_provider_library(LIBRARY, onnxruntime_ep_openvino.get_library_path())
    found = (d for d in ort.get_ep_devices() if d.ep_metadata.get("ov_device") == "CPU")
    return [device for device in found if "ov_meta_device" not in device.ep_metadata]


def options_of(request: dict[str, Any]) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4  # errors come back as exceptions
    for key, value in request.get("entries", {}).items():
        options.add_session_config_entry(key, value)
    if request.get("plugin"):
        options.add_provider_for_devices(devices(), FLOAT32)
    return options


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Open a session, and compute all outputs where there is a feed."""
    session = ort.InferenceSession(request["model"], options_of(request))
    if "feed" in request:
        with np.load(request["feed"]) as feed:
            results = session.run(None, dict(feed))
        np.savez(request["results"], *results)
    return {"providers": session.get_providers()}


def describe(request: dict[str, Any]) -> dict[str, Any]:
    """The plug-in's device, and what it says about a model's compatibility text."""
    found = devices() if request.get("plugin") else []
    answer: dict[str, Any] = {"devices": [d.ep_metadata["FULL_DEVICE_NAME"] for d in found]}
    if "model" in request:
        text = binding.get_compatibility_info_from_model(
            request["model"], "OpenVINOExecutionProvider"
        )
        answer["compatibility_info"] = text
        if found:
            verdict = binding.get_model_compatibility_for_ep_devices(found, text)
            answer["verdict"] = verdict.name
    return answer


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        answer = run(request) if request["do"] == "run" else describe(request)
    except Exception as exc:  # noqa: BLE001 - whatever it is, the test is told
        answer = {"error": type(exc).__name__, "message": str(exc)}
    sys.stdout.write(json.dumps(answer))


main()
