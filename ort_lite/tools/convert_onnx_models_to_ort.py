"""ONNX models to the ORT format, with onnxruntime's options and names: for `python -m`."""

from __future__ import annotations

import argparse
import enum
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import write_file
from ctx_formats.lean_dataclass import dataclass
from ort_lite.options import GraphOptimizationLevel, SessionOptions
from ort_lite.status import OrtLiteError
from ort_lite.tools.required_operators import config_text

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL_VARIABLE = "ORT_CONVERT_ONNX_MODELS_TO_ORT_OPTIMIZATION_LEVEL"
LEVELS = {
    "disable": GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": GraphOptimizationLevel.ORT_ENABLE_LAYOUT,
    "all": GraphOptimizationLevel.ORT_ENABLE_ALL,
}


class OptimizationStyle(enum.Enum):
    """Fixed: all graph transformations of the level. Runtime: those of the basic level alone.

    ort_lite records no optimizations in a file, which onnxruntime's Runtime style does: a session
    transforms and fuses each partition for its execution provider.
    """

    Fixed = 0
    Runtime = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """Settings of one conversion.

    Attributes:
        source: A model, or a folder that is searched with the folders in it.
        output: Folder of the results.
        level: Name of a level.
        style: See OptimizationStyle.
        library: Of custom operators; None without one.
        saves_onnx: Whether the optimized model is saved in ONNX, too.
        goes_on: Whether to go on after a model that cannot be converted.
    """

    source: Path
    output: Path
    level: str
    style: OptimizationStyle
    library: Path | None = None
    saves_onnx: bool = False
    goes_on: bool = False

    @property
    def folder(self) -> Path:
        """The folder that names of models are relative to."""
        return self.source if self.source.is_dir() else self.source.parent

    def suffix(self, end: str) -> str:
        """End of a file's name: the level unless it is "all", the style, and `end`."""
        level = f".{self.level}" if self.level != "all" else ""
        style = ".with_runtime_opt" if self.style is OptimizationStyle.Runtime else ""
        return f"{level}{style}{end}"


def convert_onnx_models_to_ort(  # noqa: PLR0913 - onnxruntime's signature
    model_path_or_dir: Path,
    output_dir: Path | None = None,
    optimization_styles: Sequence[OptimizationStyle] | None = None,
    custom_op_library_path: Path | None = None,
    target_platform: str | None = None,  # noqa: ARG001 - onnxruntime's; no file here is made for one
    save_optimized_onnx_model: bool = False,  # noqa: FBT001, FBT002 - onnxruntime's signature
    allow_conversion_failures: bool = False,  # noqa: FBT001, FBT002 - onnxruntime's signature
    enable_type_reduction: bool = False,  # noqa: FBT001, FBT002 - onnxruntime's signature
    *,
    level: str = "all",
) -> None:
    """Convert a model, or all models of a folder, and list the operators that they need.

    Raises:
        FileNotFoundError: The model or the library is not there.
        ValueError: There is no model in the folder, or the level is unknown.
        OrtLiteError: A model cannot be converted, and `allow_conversion_failures` is false.
    """
    if level not in LEVELS:
        raise ValueError(f"optimization level '{level}' is unknown, expected {', '.join(LEVELS)}")
    source = model_path_or_dir.resolve()
    if not source.is_dir() and not source.is_file():
        raise FileNotFoundError(f"Model path '{source}' is not a file or directory.")
    library = custom_op_library_path.resolve() if custom_op_library_path else None
    if library is not None and not library.is_file():
        raise FileNotFoundError(f"Unable to find custom operator library '{library}'")
    folder = source if source.is_dir() else source.parent
    output = output_dir.resolve() if output_dir is not None else folder
    for style in optimization_styles or ():
        job = Conversion(
            source=source,
            output=output,
            level=level,
            style=style,
            library=library,
            saves_onnx=save_optimized_onnx_model,
            goes_on=allow_conversion_failures,
        )
        _report(f"Converting models with optimization style '{style.name}' and level '{level}'")
        converted = _convert_all(job)
        config = _config_path(job, with_types=enable_type_reduction)
        _report(f"Generating config file {config}")
        text = config_text(converted, with_types=enable_type_reduction)
        write_file(config, text.encode(), replace=True)


def _convert_all(job: Conversion) -> list[Path]:
    models = _list_models(job.source)
    if not models:
        raise ValueError(f"No model files were found in '{job.source}'")
    converted = []
    for model in models:
        target = (job.output / model.relative_to(job.folder)).with_suffix(job.suffix(".ort"))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if job.saves_onnx:
                optimized = target.with_name(model.with_suffix(job.suffix(".optimized.onnx")).name)
                _report(f"Saving optimized ONNX model {model} to {optimized}")
                _save(model, optimized, "ONNX", job)
            _report(f"Converting optimized ONNX model {model} to ORT format model {target}")
            _save(model, target, "ORT", job)
        except OrtLiteError as exc:
            _report(f"Error converting {model}: {exc}")
            if not job.goes_on:
                raise
        else:
            converted.append(target)
    _report(f"Converted {len(converted)}/{len(models)} models successfully.")
    return converted


def _list_models(source: Path) -> list[Path]:
    files = sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]
    models = []
    for path in files:
        name = path.name.casefold()
        if name.endswith(".optimized.onnx"):
            _report(f"Ignoring '{path}'")
        elif name.endswith(".onnx"):
            models.append(path)
    return models


def _save(model: Path, target: Path, model_format: str, job: Conversion) -> None:
    """Optimize a model on the CPU EP and save it."""
    from ort_lite.session import InferenceSession  # noqa: PLC0415 - lazy: rare

    options = SessionOptions()
    options.optimized_model_filepath = str(target)
    options.add_session_config_entry("session.save_model_format", model_format)
    level = LEVELS[job.level]
    if job.style is OptimizationStyle.Runtime:
        level = min(level, GraphOptimizationLevel.ORT_ENABLE_BASIC)
    options.graph_optimization_level = level
    if job.library is not None:
        options.register_custom_ops_library(job.library)
    InferenceSession(model, options, providers=["CPUExecutionProvider"]).close()


def _config_path(job: Conversion, *, with_types: bool) -> Path:
    stem = "required_operators_and_types" if with_types else "required_operators"
    name = f"{stem}{job.suffix('.config')}"
    if job.source.is_dir():
        return job.output / name
    return job.output / job.source.with_suffix(f".{name}").name


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the command line, with onnxruntime's names."""
    parser = argparse.ArgumentParser(
        "convert_onnx_models_to_ort.py",
        description="Convert an ONNX model, or all .onnx files of a folder and the folders in it, "
        "to the ORT format, and list the operators that they need in required_operators.config.",
    )
    styles = [style.name for style in OptimizationStyle]
    parser.add_argument("--output_dir", type=Path, help="Folder of the results.")
    parser.add_argument(
        *("--optimization_style",), nargs="+", default=styles, choices=styles,
        help="Fixed applies all graph transformations of the level, Runtime those of the basic "
        "level; no optimizations are recorded. Default: both.",
    )  # fmt: skip
    parser.add_argument(
        "--enable_type_reduction", action="store_true", help="Add types to the configuration."
    )
    parser.add_argument("--custom_op_library", type=Path, help="Refused: see docs/options.md.")
    parser.add_argument(
        "--save_optimized_onnx_model", action="store_true", help="Save it in ONNX, too."
    )
    parser.add_argument(
        "--allow_conversion_failures", action="store_true", help="Go on after a failure."
    )
    parser.add_argument(
        "--target_platform", choices=["arm", "amd64"], help="Has no effect on the files."
    )
    parser.add_argument("model_path_or_dir", type=Path, help="A model, or a folder of models.")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Convert what the command line names."""
    arguments = parse_args(argv)
    convert_onnx_models_to_ort(
        arguments.model_path_or_dir,
        output_dir=arguments.output_dir,
        optimization_styles=[OptimizationStyle[name] for name in arguments.optimization_style],
        custom_op_library_path=arguments.custom_op_library,
        target_platform=arguments.target_platform,
        save_optimized_onnx_model=arguments.save_optimized_onnx_model,
        allow_conversion_failures=arguments.allow_conversion_failures,
        enable_type_reduction=arguments.enable_type_reduction,
        level=os.environ.get(LEVEL_VARIABLE, "all"),
    )


if __name__ == "__main__":
    main()
