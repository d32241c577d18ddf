"""Provider options of the OpenVINO EP, with ONNX Runtime's names, checked; as properties."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.ep import InvalidArgument, read_count, read_flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep import Bound

PACKAGE = "openvino"
DEVICE_OPTION = "device_type"
OPTIONS: Mapping[str, str] = {
    DEVICE_OPTION: "CPU (default), GPU, GPU.n, NPU, AUTO:a,b, HETERO:a,b or MULTI:a,b",
    "precision": "FP32 or ACCURACY (CPU), FP16, FP32 or ACCURACY (GPU), FP16 or ACCURACY (NPU)",
    "num_of_threads": "threads for one inference, 1 or more",
    "num_streams": "inferences at the same time, 1 or more",
    "load_config": 'JSON of OpenVINO properties by device, e.g. {"CPU": {"KEY": "value"}}',
    "disable_dynamic_shapes": "true refuses dynamic shapes instead of compiling for them",
    "reshape_input": "static or bounded input shapes, e.g. images[1,3,320,320],ids[1..8,64]",
    "npu_platform": "compile for this NPU without having it: 3720, 4000, 5010 or 5020",
    "ieee_semantics": "true keeps NaN and infinities as ONNX Runtime's CPU EP does, on CPU; slower",
    "cache_dir": "folder for OpenVINO's own cache; not used together with EP contexts",
}

_GROUPS = ("AUTO", "HETERO", "MULTI")
_PRECISIONS = {
    "CPU": ("FP32", "ACCURACY"),
    "GPU": ("FP16", "FP32", "ACCURACY"),
    "NPU": ("FP16", "ACCURACY"),
}
_INFERENCE_PRECISION = {"FP32": "f32", "FP16": "f16"}
_DEFAULT_PRECISION = {"CPU": "ACCURACY", "GPU": "FP16", "NPU": "FP16"}
_LOAD_CONFIG_DEVICES = ("CPU", "GPU", "NPU", "AUTO", "HETERO", "MULTI")
THREADS_KEY = "INFERENCE_NUM_THREADS"
STREAMS_KEY = "NUM_STREAMS"
ONE_THREAD: Mapping[str, object] = MappingProxyType({THREADS_KEY: 1, STREAMS_KEY: 0})
"""Without a stream the CPU plug-in computes in the thread that asks, and starts none. A stream of
one thread loses errors in runs of free shapes: OpenVINO then reads foreign memory (ADR 53).
"""
MAX_JSON = 1 << 16
_PLATFORM_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVINOOptions:
    """Checked options.

    Attributes:
        device: As OpenVINO takes it, e.g. "CPU", "GPU.1", "AUTO:NPU,CPU".
        precision: Of `_PRECISIONS` for the device, its default where none was given.
        load_config: Properties for the device, as OpenVINO takes them.
        reshape: Input name to bounds for each of its dimensions.
        ieee: Whether NaN and infinities are kept.
        npu_platform: Four digits; "" compiles for the device that is here.
    """

    device: str = "CPU"
    precision: str = "ACCURACY"
    num_of_threads: int | None = None
    num_streams: int | None = None
    load_config: Mapping[str, object] = field(default_factory=dict)
    disable_dynamic_shapes: bool = False
    reshape: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    npu_platform: str = ""
    ieee: bool = False
    cache_dir: str = ""

    @property
    def kind(self) -> str:
        """The first device's kind: CPU, GPU or NPU."""
        return device_kind(self.device)

    @property
    def has_cpu(self) -> bool:
        """Whether the device is a CPU, or a group that names one."""
        return "CPU" in self.device.partition(":")[2].split(",") or self.kind == "CPU"

    @property
    def leaves_threads_open(self) -> bool:
        """Whether nobody chose a number of threads or streams of the CPU."""
        chosen = self.num_of_threads is not None or self.num_streams is not None
        named = THREADS_KEY in self.load_config or STREAMS_KEY in self.load_config
        return self.device == "CPU" and not chosen and not named

    @property
    def needs_static_shapes(self) -> bool:
        """Whether every dimension must have a size before compiling."""
        return self.disable_dynamic_shapes or self.kind == "NPU"


def device_kind(device: str) -> str:
    """CPU, GPU or NPU, of the first device that `device` names; AUTO alone is CPU."""
    group, members = _split_group(device)
    first = (members or "CPU").split(",")[0] if group else device
    return first.strip().split(".")[0].split("(")[0]


def _split_group(device: str) -> tuple[str, str]:
    """A group of devices and its members, such as ("AUTO", "NPU,CPU"); ("", "") for a device."""
    group, colon, members = device.partition(":")
    return (group, members) if group in _GROUPS and bool(colon) == bool(members) else ("", "")


def _is_device(name: str) -> bool:
    kind, dot, number = name.partition(".")
    numbered = not dot or (kind != "CPU" and number.isascii() and number.isdigit())
    return kind in _PRECISIONS and numbered


def parse_options(options: Mapping[str, str]) -> OpenVINOOptions:
    """Check every option.

    Raises:
        InvalidArgument: A value that the option cannot have; says which it can.
    """
    device = _device(options.get(DEVICE_OPTION, "CPU"))
    kind = device_kind(device)
    return OpenVINOOptions(
        device=device,
        precision=_precision(options.get("precision", ""), kind),
        num_of_threads=read_count(options, "num_of_threads"),
        num_streams=read_count(options, "num_streams"),
        load_config=_load_config(options.get("load_config", ""), kind, device),
        disable_dynamic_shapes=read_flag(options, "disable_dynamic_shapes"),
        reshape=_shapes(options.get("reshape_input", "")),
        npu_platform=_npu_platform(options.get("npu_platform", ""), device),
        ieee=_ieee(options, device),
        cache_dir=options.get("cache_dir", ""),
    )


def compile_config(options: OpenVINOOptions) -> dict[str, object]:
    """Properties for compile_model and import_model.

    On CPU the default is EXECUTION_MODE_HINT=ACCURACY: without it OpenVINO quantises
    activations on the fly where weights are int8, which moves MiniLM's outputs by 8e-3
    relative, and computes in bf16 on CPUs with AMX. `load_config` overrides everything, e.g.
    {"CPU": {"EXECUTION_MODE_HINT": "PERFORMANCE"}} for speed at that price. One thread, chosen or
    because there is one CPU, is the caller's.
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
        config[THREADS_KEY] = options.num_of_threads
    if options.num_streams is not None:
        config[STREAMS_KEY] = options.num_streams
    if options.npu_platform:
        config["NPU_PLATFORM"] = options.npu_platform
        config["NPU_COMPILER_TYPE"] = "PLUGIN"  # the driver's own compiler needs the device
    if options.cache_dir:
        config["CACHE_DIR"] = options.cache_dir
    if options.kind != "CPU" or ":" in options.device:
        config.pop(THREADS_KEY, None)
    config.update(options.load_config)
    one = str(config.get(THREADS_KEY, _count_cpus())) == "1"
    if one and options.device == "CPU" and STREAMS_KEY not in config:
        return {**config, **ONE_THREAD}
    return config


def _count_cpus() -> int:
    """CPUs that this process may use; `ort_lite.ep`'s would be one more import of each start."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def import_config(options: OpenVINOOptions, *, one_thread: bool = False) -> dict[str, object]:
    """Properties for import_model: what steers compilation alone is left out.

    Args:
        options: Of the session that imports.
        one_thread: Whether the blob was compiled for the caller's thread, where these options
            leave that open.
    """
    config = compile_config(options)
    if one_thread and options.leaves_threads_open:
        config |= ONE_THREAD
    for key in ("CACHE_DIR", "NPU_COMPILATION_MODE_PARAMS"):
        config.pop(key, None)
    return config


def weightless_config(
    options: OpenVINOOptions, path: str, *, one_thread: bool = False
) -> dict[str, object]:
    """As `import_config`, for a form without constants; OpenVINO maps the file at `path`."""
    config = import_config(options, one_thread=one_thread)
    return {**config, "WEIGHTS_PATH": path, "ENABLE_WEIGHTLESS": True}


def _device(text: str) -> str:
    device = text.strip().upper()
    group, members = _split_group(device)
    named = [m.strip() for m in (members.split(",") if group else [device]) if m.strip()]
    if not all(map(_is_device, named)) or not (named or group == "AUTO"):
        raise InvalidArgument(f"device_type is '{text}', expected {OPTIONS[DEVICE_OPTION]}")
    return f"{group}:{','.join(named)}" if group and named else device


def _precision(text: str, kind: str) -> str:
    if not text:
        return _DEFAULT_PRECISION[kind]
    if text.upper() not in _PRECISIONS[kind]:
        raise InvalidArgument(
            f"precision is '{text}', expected one of {', '.join(_PRECISIONS[kind])} for {kind}"
        )
    return text.upper()


def _shapes(text: str) -> dict[str, tuple[Bound, ...]]:
    if not text:
        return {}
    from ort_lite.ep import parse_shapes  # noqa: PLC0415 - lazy: reload

    return parse_shapes(text)


def _npu_platform(text: str, device: str) -> str:
    digits = text.upper().removeprefix("NPU")
    if text and not (digits.isascii() and digits.isdigit() and len(digits) == _PLATFORM_DIGITS):
        raise InvalidArgument(f"npu_platform is '{text}', expected four digits such as 4000")
    if text and device != "NPU":
        raise InvalidArgument(f"npu_platform is for device_type NPU, and device_type is '{device}'")
    return digits


def _ieee(options: Mapping[str, str], device: str) -> bool:
    ieee = read_flag(options, "ieee_semantics")
    if ieee and device != "CPU":
        raise InvalidArgument(
            f"ieee_semantics is for device_type CPU, and device_type is '{device}'"
        )
    return ieee


def _load_config(text: str, kind: str, device: str) -> dict[str, object]:
    if not text:
        return {}
    import json  # noqa: PLC0415 - lazy: reload

    if len(text) > MAX_JSON:
        raise InvalidArgument(f"load_config is {len(text)} characters, at most {MAX_JSON}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidArgument(f"load_config is not JSON: {exc}") from exc
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise InvalidArgument(f"load_config is not of the form {OPTIONS['load_config']}")
    unknown = [key for key in content if key not in _LOAD_CONFIG_DEVICES]
    if unknown:
        raise InvalidArgument(
            f"load_config names devices {unknown}, expected {', '.join(_LOAD_CONFIG_DEVICES)}"
        )
    return {**content.get(_split_group(device)[0] or kind, {})}
