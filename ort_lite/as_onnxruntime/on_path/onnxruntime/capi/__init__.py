"""onnxruntime.capi: the modules of ort_lite.capi, of this package's session classes."""

from __future__ import annotations

import ort_lite.capi

__path__ = list(ort_lite.capi.__path__)
__getattr__, __dir__ = ort_lite.capi.modules_of(__name__)
