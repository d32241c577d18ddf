"""What a blob, and the metadata of a model, say a payload was built for."""

from __future__ import annotations

import json

from ctx_formats.identity import HardwareIdentity
from eps.openvino.payload.blob_header import parse_requirements
from ort_lite.version import VERSION

INFO_VERSION = "1.0"
_MAX_INFO = 1 << 16


def requirement_identity(text: str) -> HardwareIdentity:
    """`meta=1.0;ov=2026.4.1;isa=...` as an identity; all "" for an empty text."""
    return HardwareIdentity(sdk_version=parse_requirements(text).get("ov", ""), requirements=text)


def compatibility_json(identity: HardwareIdentity) -> str:
    """`ep_compatibility_info` in the form of ONNX Runtime's OpenVINO EP 1.8."""
    return json.dumps(
        {
            "ovep_compat_ver": INFO_VERSION,
            "ovep_ver": f"ort_lite-{VERSION}",
            "ovep_bin_ver": "1.1",
            "ov_compat_string": identity.requirements,
        },
        separators=(",", ":"),
    )


def info_identity(info: str) -> HardwareIdentity | None:
    """What such a text says; None for one of another form or version.

    The version of the EP that wrote it does not matter: the container and OpenVINO's own
    requirement text decide what loads.
    """
    try:
        fields = json.loads(info) if len(info) <= _MAX_INFO else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("ovep_compat_ver") != INFO_VERSION:
        return None
    text = fields.get("ov_compat_string")
    return requirement_identity(text) if isinstance(text, str) else None
