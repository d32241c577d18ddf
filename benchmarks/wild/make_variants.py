"""Writes the forms in which models are deployed, for wild.py: quantised, float16 and optimised.

`python make_variants.py FOLDER MODEL... [--only FORM ...]` needs an environment of its own, with
onnx, onnxruntime and sympy (and nothing of this project). The inputs of NAME.onnx are read from
NAME.npz. Then `python -m benchmarks.wild.wild --models FOLDER` measures the variants,
NAME_FORM.onnx with NAME_FORM.npz. Ranges for quantisation are those of random inputs.
"""

from __future__ import annotations

import argparse
import logging
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.optimizer import optimize_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TEXT = ("bert", "gpt2")
"""Parts of the names of models that onnxruntime.transformers has fusions for."""
SAMPLES = 4
PRODUCTS = ("MatMul", "Gemm")
"""What is quantised of a text model, whose masks may be infinite: no scale fits them."""

Feed = dict[str, np.ndarray]


class Samples(CalibrationDataReader):
    """The inputs of a model, and random ones of the same shapes and types."""

    def __init__(self, feed: Feed) -> None:
        random = np.random.default_rng(0)
        others = (
            {key: _vary(array, random) for key, array in feed.items()} for _ in range(SAMPLES - 1)
        )
        self._feeds = iter([feed, *others])

    def get_next(self) -> Feed | None:
        """The next inputs; None after the last."""
        return next(self._feeds, None)


def _vary(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if array.dtype.kind != "f":
        return random.permuted(array)
    return random.normal(array.mean(), array.std() or 1.0, array.shape).astype(array.dtype)


def _is_text(path: Path) -> bool:
    return any(name in path.name for name in TEXT)


def static(
    source: Path,
    target: Path,
    feed: Feed,
    *,
    layout: QuantFormat,
    activations: QuantType,
    per_channel: bool,
) -> None:
    """Ranges of activations measured beforehand; 8-bit weights are int8."""
    with TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            target,
            Samples(feed),
            quant_format=layout,
            activation_type=activations,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=list(PRODUCTS) if _is_text(source) else None,
            per_channel=per_channel,
            extra_options={"ActivationSymmetric": activations == QuantType.QInt8},
        )


def dynamic(source: Path, target: Path, feed: Feed, *, per_channel: bool) -> None:
    """Ranges of activations measured in each run; convolutions keep their floats."""
    del feed
    with TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_dynamic(
            prepared,
            target,
            op_types_to_quantize=["MatMul", "Gemm", "Attention", "LSTM", "Gather"],
            per_channel=per_channel,
            weight_type=QuantType.QInt8,
        )


def half(
    source: Path, target: Path, feed: Feed, *, keep_io: bool, keep_operators: Sequence[str] = ()
) -> None:
    """Weights and arithmetic in float16."""
    blocked = [*onnxruntime.transformers.float16.DEFAULT_OP_BLOCK_LIST, *keep_operators]
    model = convert_float_to_float16(
        onnx.load(source), keep_io_types=keep_io, op_block_list=blocked
    )
    onnx.save(model, target)
    if not keep_io:
        for key, array in feed.items():
            if array.dtype == np.float32:
                feed[key] = array.astype(np.float16)


def few_bits(source: Path, target: Path, feed: Feed, *, bits: int, level: int | None) -> None:
    """Weights of matrix products in blocks of 32 with a scale each."""
    del feed
    quantizer = MatMulNBitsQuantizer(
        onnx.load(source),
        bits=bits,
        block_size=32,
        is_symmetric=level is None,
        accuracy_level=level,
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


def optimise(source: Path, target: Path, feed: Feed, *, level: str) -> None:
    """As onnxruntime's session writes it: `level` is ORT_ENABLE_EXTENDED, for example."""
    del feed
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(target)
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def fuse(source: Path, target: Path, feed: Feed, *, in_half: bool = False) -> None:
    """As onnxruntime.transformers writes it: Attention, SkipLayerNormalization, BiasGelu."""
    del feed
    kind = "gpt2" if "gpt2" in source.name else "bert"
    model = optimize_model(str(source), model_type=kind, opt_level=0, use_gpu=in_half)
    if in_half:
        model.convert_float_to_float16(keep_io_types=True)
    model.save_model_to_file(str(target))


def fuse_and_quantise(source: Path, target: Path, feed: Feed) -> None:
    """Fused, then quantised: QAttention and MatMulInteger."""
    with TemporaryDirectory() as folder:
        middle = Path(folder) / source.name
        fuse(source, middle, feed)
        floats = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # fused nodes are not inferred
        quantize_dynamic(middle, target, weight_type=QuantType.QInt8, extra_options=floats)


def _static(layout: str, activations: str, *, per_channel: bool) -> partial[None]:
    return partial(
        static,
        layout=QuantFormat.from_string(layout),
        activations=QuantType.from_string(activations),
        per_channel=per_channel,
    )


FORMS: Mapping[str, Callable[[Path, Path, Feed], None]] = {
    "qdq_u8": _static("QDQ", "QUInt8", per_channel=False),
    "qdq_u8_channels": _static("QDQ", "QUInt8", per_channel=True),
    "qdq_s8": _static("QDQ", "QInt8", per_channel=False),
    "qdq_s8_channels": _static("QDQ", "QInt8", per_channel=True),
    "qoperator_u8": _static("QOperator", "QUInt8", per_channel=False),
    "qoperator_u8_channels": _static("QOperator", "QUInt8", per_channel=True),
    "qoperator_s8": _static("QOperator", "QInt8", per_channel=False),
    "dynamic": partial(dynamic, per_channel=False),
    "dynamic_channels": partial(dynamic, per_channel=True),
    "half": partial(half, keep_io=False),
    "half_inside": partial(half, keep_io=True),
    "half_mixed": partial(
        half, keep_io=True, keep_operators=("Softmax", "LayerNormalization", "ReduceMean", "Gemm")
    ),
    "extended": partial(optimise, level="ORT_ENABLE_EXTENDED"),
    "all": partial(optimise, level="ORT_ENABLE_ALL"),
    "4_bits": partial(few_bits, bits=4, level=None),
    "4_bits_level_4": partial(few_bits, bits=4, level=4),
    "8_bits": partial(few_bits, bits=8, level=None),
    "fused": fuse,
    "fused_half": partial(fuse, in_half=True),
    "fused_dynamic": fuse_and_quantise,
}
ONLY_TEXT = ("4_bits", "8_bits", "fused")
"""Beginnings of forms that only models of TEXT have."""


def write(folder: Path, path: Path, form: str) -> str:
    """Write a variant and its inputs; the reason where a tool cannot make it, else ""."""
    target = folder / f"{path.stem}_{form}.onnx"
    with np.load(path.with_suffix(".npz")) as arrays:
        feed = {key: arrays[key] for key in arrays.files}
    try:
        FORMS[form](path, target, feed)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(target, options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
    # The tools raise many kinds of errors for models that they cannot convert.
    except Exception as exc:  # noqa: BLE001 - see above
        target.unlink(missing_ok=True)
        return (str(exc).strip() or type(exc).__name__).splitlines()[0]
    np.savez(target.with_suffix(".npz"), **feed)
    return ""


def main() -> int:
    """Make one after another; 1 if one could not be made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--only", nargs="+", choices=FORMS, default=tuple(FORMS), metavar="FORM")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for path in arguments.models:
        for form in arguments.only:
            if form.startswith(ONLY_TEXT) and not _is_text(path):
                continue
            reason = write(arguments.folder, path, form)
            failed = failed or bool(reason)
            print(f"{path.stem}_{form}", f"not made: {reason}" if reason else "", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
