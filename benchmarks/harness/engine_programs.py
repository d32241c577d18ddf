"""What a program writes to open a model with an engine, and to run it: the short way of each.

Nothing is imported but the engine, where a program's first lines would. Each function imports it,
makes what a process has once, and gives a function that opens a model; that gives one that runs
it, from arrays by input name to arrays of the outputs. `cache` is the folder of the engine's own
cache, or "" for none.
"""

TYPE_CHECKING = False  # importing typing would be counted as the engine's
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    Run = Callable[[Mapping[str, Any]], Any]
    Open = Callable[[str], Run]

OPENVINO_EP = "OpenVINOExecutionProvider"
CPU_EP = "CPUExecutionProvider"

FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32"}
"""For OpenVINO's CPU plug-in, which computes in bfloat16 on CPUs that can, unless it is asked."""

PLUGIN_FLOAT32 = {"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'}
"""The same for onnxruntime-ep-openvino 1.8, whose `precision` option has no effect."""


def ort_lite(cache: str) -> "Open":
    """ort_lite on OpenVINO."""
    return _ort_lite(cache, [OPENVINO_EP])


def ort_lite_default(cache: str) -> "Open":
    """ort_lite with the providers that it chooses by default."""
    return _ort_lite(cache, None)


def ort_lite_cpu(cache: str) -> "Open":
    """ort_lite's own CPU EP."""
    return _ort_lite(cache, [CPU_EP])


def ort_lite_opencl(cache: str) -> "Open":
    """ort_lite on OpenCL."""
    return _ort_lite(cache, ["OpenCLExecutionProvider"])


def _ort_lite(cache: str, providers: "list[str] | None") -> "Open":
    import ort_lite as ort  # noqa: PLC0415 - the program of one engine knows nothing of the others

    options = None
    if cache:
        options = ort.SessionOptions()
        options.add_session_config_entry("session.ep_context_cache", "1")
        options.add_session_config_entry("session.ep_context_cache_dir", cache)

    def open_model(model: str) -> "Run":
        session = ort.InferenceSession(model, options, providers=providers)
        return lambda feed: session.run(None, feed)

    return open_model


def onnxruntime_cpu(cache: str) -> "Open":
    """onnxruntime's own CPU EP, which has no cache."""
    import onnxruntime as ort  # noqa: PLC0415 - see _ort_lite

    assert not cache

    def open_model(model: str) -> "Run":
        session = ort.InferenceSession(model, providers=[CPU_EP])
        return lambda feed: session.run(None, feed)

    return open_model


def onnxruntime_openvino(cache: str) -> "Open":
    """onnxruntime with Intel's plug-in; its cache are context models."""
    import onnxruntime as ort  # noqa: PLC0415 - see _ort_lite
    import onnxruntime_ep_openvino  # noqa: PLC0415 - see _ort_lite

    assert not cache
    ort.register_execution_provider_library(OPENVINO_EP, onnxruntime_ep_openvino.get_library_path())
    options = ort.SessionOptions()
    # onnxruntime's own threads would spin for nothing; without them it takes 4 % less time.
    options.intra_op_num_threads = 1
    options.add_provider_for_devices(cpu_devices(ort), PLUGIN_FLOAT32)

    def open_model(model: str) -> "Run":
        session = ort.InferenceSession(model, options)
        return lambda feed: session.run(None, feed)

    return open_model


def cpu_devices(ort: "ModuleType") -> "list[Any]":
    """The CPU among the devices of Intel's plug-in, registered before; none where it has none."""
    return [
        device
        for device in ort.get_ep_devices()
        if device.ep_metadata.get("ov_device") == "CPU"
        and "ov_meta_device" not in device.ep_metadata  # AUTO is the same device again
    ]


def openvino(cache: str) -> "Open":
    """openvino alone, with or without its cache; a .blob is imported from a map of the file."""
    import openvino as ov  # noqa: PLC0415 - see _ort_lite

    core = ov.Core()
    if cache:
        core.set_property({"CACHE_DIR": cache})

    def open_model(model: str) -> "Run":
        if model.endswith(".blob"):
            import numpy as np  # noqa: PLC0415 - openvino has imported it

            # Copy on write: OpenVINO refuses maps that are read-only.
            compiled = core.import_model(ov.Tensor(np.memmap(model, mode="c")), "CPU", FLOAT32)
        else:
            compiled = core.compile_model(model, "CPU", FLOAT32)
        request = compiled.create_infer_request()

        def run(feed: "Mapping[str, Any]") -> "list[Any]":
            for name, array in feed.items():
                request.set_tensor(name, ov.Tensor(array, shared_memory=True))
            request.infer()
            return [request.get_tensor(port).data for port in compiled.outputs]

        return run

    return open_model


PROGRAMS = {
    "ort_lite": ort_lite,
    "ort_lite[default]": ort_lite_default,
    "ort_lite[CPU]": ort_lite_cpu,
    "ort_lite[OpenCL]": ort_lite_opencl,
    "onnxruntime+openvino": onnxruntime_openvino,
    "onnxruntime[CPU]": onnxruntime_cpu,
    "openvino": openvino,
}
"""By the names that engines.py gives them."""
