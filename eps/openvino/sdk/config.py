"""OpenVINO properties for compiling and importing, from the provider options."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eps.openvino.options import OpenVINOOptions

_INFERENCE_PRECISION = {"FP32": "f32", "FP16": "f16"}


def compile_config(options: OpenVINOOptions) -> dict[str, object]:
    """Properties for compile_model and import_model.

    On CPU the default is EXECUTION_MODE_HINT=ACCURACY: without it OpenVINO quantises
    activations on the fly where weights are int8, which moves MiniLM's outputs by 8e-3
    relative, and computes in bf16 on CPUs with AMX. `load_config` overrides everything, e.g.
    {"CPU": {"EXECUTION_MODE_HINT": "PERFORMANCE"}} for speed at that price.
    """
    config: dict[str, object] = {"PERFORMANCE_HINT": "LATENCY"}
    if options.precision == "ACCURACY" or options.kind == "CPU":
        config["EXECUTION_MODE_HINT"] = "ACCURACY"
    if options.precision in _INFERENCE_PRECISION:
        config["INFERENCE_PRECISION_HINT"] = _INFERENCE_PRECISION[options.precision]
    if options.kind != "CPU" and options.has_cpu:
        # To a CPU f16 means bf16 where it has that, with three digits; FP16 is for the others.
        config["DEVICE_PROPERTIES"] = {"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}
    if options.num_of_threads is not None:
        config["INFERENCE_NUM_THREADS"] = options.num_of_threads
    if options.num_streams is not None:
        config["NUM_STREAMS"] = options.num_streams
    if options.npu_platform:
        config["NPU_PLATFORM"] = options.npu_platform
        config["NPU_COMPILER_TYPE"] = "PLUGIN"  # the driver's own compiler needs the device
    if options.cache_dir:
        config["CACHE_DIR"] = options.cache_dir
    if options.kind != "CPU" or ":" in options.device:
        config.pop("INFERENCE_NUM_THREADS", None)
    return {**config, **options.load_config}


def import_config(options: OpenVINOOptions) -> dict[str, object]:
    """Properties for import_model: what steers compilation alone is left out."""
    config = compile_config(options)
    for key in ("CACHE_DIR", "NPU_COMPILATION_MODE_PARAMS"):
        config.pop(key, None)
    return config


def weightless_config(options: OpenVINOOptions, path: str) -> dict[str, object]:
    """Properties for importing a form without constants; OpenVINO maps the file at `path`."""
    return {**import_config(options), "WEIGHTS_PATH": path, "ENABLE_WEIGHTLESS": True}
