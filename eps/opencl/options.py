"""Provider options of the OpenCL EP, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep import (
    RESHAPE_INPUT,
    InvalidArgument,
    parse_shapes,
    read_choice,
    read_count,
    read_flag,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.custom.operators import CustomKernels

OPTIONS: Mapping[str, str] = {
    "platform": "part of a platform's name, or its index; any platform without it",
    "device": "CPU, GPU, ACCELERATOR, part of a device's name, its index, or platform.device",
    "precision": "fp32 (default), or fp16: weights of half the size, arithmetic in float32",
    "rebuild": "true builds a payload's own source again if only the driver differs",
    "max_variants": "programs kept for a model with free dimensions, 1 or more (default 8)",
    "reshape_input": "sets of shapes to compile ahead of time, e.g. ids[1,64];ids[1,128]",
    "other_shapes": "auto (default), compile or refuse: what a run with further shapes does",
    "weights": "auto (default), copy or map: whether weights stay in the mapped payload file",
    "tuning": "off (default), fast or full: kernel parameters by a rule, or by measuring",
    "tuning_cache": "folder for tuning results; default: opencl_tuning in the user's cache",
    "winograd": "true (default; CPUs, fp32) or false: 3x3 convolutions with fewer products",
    "templates": "auto (default: by the device), cpu, gpu or gpu-registers: how kernels are made",
    "build_processes": "most processes that the driver's compiler runs in (default 4); 1: this one",
    "custom_kernels": "operators of your own: a text in OpenCL C (docs/custom_kernels.md)",
    "context": "a pyopencl.Context, or the handle of one, in which the session runs",
    "command_queue": "a pyopencl.CommandQueue, or the handle of one, to which runs are enqueued",
    "profiling": "true logs the time of each kernel at DEBUG, and makes runs slower",
}

MAX_VARIANTS = 8
BUILD_PROCESSES = 4
TEMPLATES = ("auto", "cpu", "gpu", "gpu-registers")
WEIGHTS = ("auto", "copy", "map")
PRECISIONS = ("fp32", "fp16")
TUNING = ("off", "fast", "full")
OTHER_SHAPES = ("auto", "compile", "refuse")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCLOptions:
    """Checked options.

    Attributes:
        platform: Part of a name in lower case or an index as text; "" for any.
        device: The same for a device, or a kind, or "platform.device".
        precision: Of `PRECISIONS`.
        rebuild: Whether a payload of another driver may be built from its source.
        max_variants: Programs that a partition with free dimensions keeps.
        reshape: Sets of shapes by input name, for each of which to compile ahead of time.
        other_shapes: Of `OTHER_SHAPES`.
        weights: Of `WEIGHTS`.
        tuning: Of `TUNING`.
        tuning_cache: Folder for what was measured; "" for one in the user's cache folder.
        winograd: Whether convolutions may be computed by Winograd's transforms.
        templates: Of `TEMPLATES`.
        build_processes: Most processes that the driver's compiler runs in.
        context: Handle of a context of the user's; 0 for that of the process.
        command_queue: Handle of a command queue of the user's; 0 for queues of the session.
        profiling: Whether the queue records times.
        custom: Operators of the user's own; None for none.
    """

    platform: str = ""
    device: str = ""
    precision: str = "fp32"
    rebuild: bool = False
    max_variants: int = MAX_VARIANTS
    reshape: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    other_shapes: str = "auto"
    weights: str = "auto"
    tuning: str = "off"
    tuning_cache: str = ""
    winograd: bool = True
    templates: str = "auto"
    build_processes: int = BUILD_PROCESSES
    context: int = 0
    command_queue: int = 0
    profiling: bool = False
    custom: CustomKernels | None = None

    @property
    def refuses_others(self) -> bool:
        """Whether other shapes than those of `reshape` are refused, and not compiled for."""
        return self.other_shapes == "refuse"


def parse_options(options: Mapping[str, str]) -> OpenCLOptions:
    """Check every option.

    Raises:
        InvalidArgument: A value that the option cannot have; says which it can.
    """
    max_variants = read_count(options, "max_variants", MAX_VARIANTS)
    reshape = _reshape(options.get(RESHAPE_INPUT, ""), max_variants)
    return OpenCLOptions(
        platform=options.get("platform", "").strip().lower(),
        device=options.get("device", "").strip().lower(),
        precision=read_choice(options, "precision", PRECISIONS),
        rebuild=read_flag(options, "rebuild"),
        max_variants=max_variants,
        reshape=reshape,
        other_shapes=_read_other_shapes(options),
        weights=read_choice(options, "weights", WEIGHTS),
        tuning=read_choice(options, "tuning", TUNING),
        tuning_cache=options.get("tuning_cache", ""),
        winograd=read_flag(options, "winograd", default=True),
        templates=read_choice(options, "templates", TEMPLATES),
        build_processes=read_count(options, "build_processes", BUILD_PROCESSES),
        context=_read_handle(options, "context"),
        command_queue=_read_handle(options, "command_queue"),
        profiling=read_flag(options, "profiling"),
        custom=_read_custom(options.get("custom_kernels", "")),
    )


def _read_custom(text: str) -> CustomKernels | None:
    if not text.strip():
        return None
    from eps.opencl.custom.declarations import parse_custom_kernels  # noqa: PLC0415 - lazy: rare

    return parse_custom_kernels(text)


def _read_handle(options: Mapping[str, str], key: str) -> int:
    """The handle of an OpenCL object; 0 without the option.

    Raises:
        InvalidArgument: It is not a number, or both a context and a queue are given.
    """
    text = options.get(key)
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidArgument(
            f"{key} is '{text}', expected an object of pyopencl or its int_ptr as a number"
        )
    if "context" in options and "command_queue" in options:
        raise InvalidArgument("context and command_queue are both given; a queue has its context")
    return int(text)


def _read_other_shapes(options: Mapping[str, str]) -> str:
    """What a run with other shapes than those of `reshape_input` does.

    Raises:
        InvalidArgument: There would be no shapes at all.
    """
    choice = read_choice(options, "other_shapes", OTHER_SHAPES)
    if choice == "refuse" and not options.get(RESHAPE_INPUT, "").strip():
        raise InvalidArgument("other_shapes=refuse needs reshape_input: the shapes to compile for")
    return choice


def _reshape(text: str, limit: int) -> tuple[dict[str, tuple[int, ...]], ...]:
    sets = []
    for part in filter(str.strip, text.split(";")):
        bounds = parse_shapes(part)
        ranges = [f"{low}..{high}" for b in bounds.values() for low, high in b if low != high]
        if ranges:
            raise InvalidArgument(
                f"reshape_input is '{text}': a kernel has fixed sizes, and {ranges[0]} is a range; "
                "give a set of shapes for each size"
            )
        sets.append({name: tuple(low for low, _ in b) for name, b in bounds.items()})
    if len(sets) > limit:
        raise InvalidArgument(
            f"reshape_input has {len(sets)} sets of shapes, and max_variants is {limit}"
        )
    return tuple(sets)
