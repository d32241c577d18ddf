"""Chooses how to call OpenVINO: the C API for reloads, the Python extension for the rest.

The C API (c_runtime.py) starts three times as fast as the extension, which registers all its
classes: docs/adr/0020-openvino-through-its-c-api.md. Remove c_api.py, c_runtime.py and c_request.py
when the extension registers classes on first use and starts as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eps.openvino.options import import_config
from eps.openvino.payload.blob_header import has_constants
from eps.openvino.sdk.c_api import VERSIONS, open_library
from eps.openvino.sdk.libraries import c_library
from eps.openvino.sdk_errors import openvino_errors
from ort_lite.ep import EPFail, get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    import openvino

    from eps.openvino.options import OpenVINOOptions
    from eps.openvino.sdk.runtime import Runtime

log = get_logger(__name__)


class Sdk:
    """A started OpenVINO, through either binding."""

    def __init__(self, options: OpenVINOOptions) -> None:
        """Start OpenVINO.

        Raises:
            EPFail: OpenVINO does not start.
        """
        self._core: Any = None
        self._released = False
        # Properties of the user's are set on a Core, and one without the device has no contexts.
        own = options.load_config or options.npu_platform
        self._device = options.device
        self._shares_core = not own and options.device.startswith(("GPU", "NPU"))
        self._runtime: Runtime = _through_c_api(options) or self.binding()

    @property
    def runtime(self) -> Runtime:
        """The runtime that names devices and imports blobs.

        Raises:
            EPFail: `release` was called.
        """
        self._require_open()
        return self._runtime

    def importer(self, payload: memoryview, config: Mapping[str, object]) -> Runtime:
        """The runtime that imports `payload` with these properties.

        The C API refuses one without constants ("Empty weights data", seen with 2026.4.1), which
        the extension takes. It takes properties from its Core.

        Raises:
            EPFail: As `core`.
        """
        if not has_constants(payload):
            return self.binding()
        with openvino_errors("starting"):
            return self.runtime.with_config(config)

    def core(self) -> openvino.Core:
        """The extension's Core, created on first use.

        Raises:
            EPFail: It cannot be loaded, or `release` was called.
        """
        self._require_open()
        if self._core is None:
            try:
                from eps.openvino.sdk.binding import BindingRuntime, ov  # noqa: PLC0415 - lazy: reload
            except ImportError as exc:  # a library that it needs is missing or of another system
                raise EPFail(f"the openvino package cannot be loaded: {exc}") from exc

            from ort_lite.ep import uncut  # noqa: PLC0415 - lazy: reload

            with openvino_errors("starting"), uncut:
                core = self._shared_core() if self._shares_core else ov.Core()
                if not self._device.startswith(("GPU", "NPU")):
                    # Loads the plug-in with the signal stack kept; a compile would not keep it.
                    BindingRuntime(core).property("CPU", "FULL_DEVICE_NAME")
            self._core = core
        return self._core

    @staticmethod
    def _shared_core() -> Any:  # noqa: ANN401 - an SDK object
        from eps.openvino.memory import shared_core  # noqa: PLC0415 - lazy: rare

        return shared_core()

    def binding(self) -> Runtime:
        """The runtime that names devices and imports blobs through the extension.

        Raises:
            EPFail: As `core`.
        """
        core = self.core()
        from eps.openvino.sdk.binding import BindingRuntime  # noqa: PLC0415 - lazy: reload

        return BindingRuntime(core)

    def release(self) -> None:
        """Let go; what was compiled or imported goes on working."""
        self._released = True
        self._core = None

    def _require_open(self) -> None:
        if self._released:
            raise EPFail("OpenVINOExecutionProvider is used after it was released")


def _through_c_api(options: OpenVINOOptions) -> Runtime | None:
    """OpenVINO through its C API; None if that does not do.

    It was tried on the CPU alone. It takes properties as text, and some for addresses, so a
    user's own (`load_config`) go through the extension.
    """
    library = c_library() if options.device == "CPU" and not options.load_config else None
    if library is None:
        return None
    try:
        api = open_library(library)
    except OSError as exc:
        log.debug("OpenVINO's C API cannot be loaded, its Python extension is used: %s", exc)
        return None
    from eps.openvino.sdk.c_runtime import CRuntime  # noqa: PLC0415 - lazy: reload

    with openvino_errors("starting"):
        version = api.version()
        if not version.startswith(VERSIONS):
            log.debug("OpenVINO %s was not tried through its C API", version)
            return None
        return CRuntime(api, options.device, import_config(options))
