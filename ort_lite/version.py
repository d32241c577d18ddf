"""The version of ort_lite, which is the distribution's."""

VERSION = "0.1.0"
PRODUCER = f"ort_lite {VERSION}"
