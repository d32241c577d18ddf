"""ort_lite as a backend of ONNX's own test suite (onnx.backend.test)."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
import zlib
from typing import TYPE_CHECKING, Any, ClassVar

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep
from parity.equal_sums import EQUAL_SUMS, check_equal_sums

import ort_lite as ort
from ort_lite.transforms.insert_casts import NAME as INSERT_CASTS

if TYPE_CHECKING:
    import unittest
    from collections.abc import Sequence

CPU = ["CPUExecutionProvider"]
EXEMPT = (
    "test_bernoulli",  # random by definition: tests/unit/cpu checks shape, type and rate
    "test_gradient_",  # training; NOT_IMPLEMENTED, as in onnxruntime
)
"""Beginnings of names of cases that the suite cannot judge, with the reason."""


TOLERANCES = {
    # Softmax in float16 rounds after every step in onnx.reference, and once here: 14 of its 144
    # results are one step apart, which the product that follows may double.
    "test_attention_4d_causal_fp16_expanded": {"rtol": 2.0**-9},
}
"""By case the runner's arguments, where its tolerance is under what the arithmetic allows."""

WHOLE_SUITE = "ORT_LITE_WHOLE_SUITE"
"""Environment variable: run all cases also where a module takes a part of them."""


class PreparedModel(BackendRep):
    """A session as the suite runs it."""

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

    providers: ClassVar[list[str]] = CPU

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> PreparedModel:
        data = model.SerializeToString()
        options = ort.SessionOptions()
        # A model of a few nodes pays on no device; here each EP is to compute what it can.
        options.add_session_config_entry("session.placement", "all")
        # The CPU EP's kernels for float16 are asked, too, which sessions do without.
        left_out = [INSERT_CASTS] if cls.providers == CPU else []
        session = ort.InferenceSession(
            data, options, providers=cls.providers, disabled_optimizers=left_out
        )
        return PreparedModel(session)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


class OpenVinoBackend(CpuBackend):
    """OpenVINO, and the CPU EP for what OpenVINO does not compute right."""

    providers: ClassVar[list[str]] = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]


INFERRED_FROM_SIZES = {"Resize", "StringNormalizer"}
"""onnx's inference takes a free dimension of their inputs for one of size 0, and refuses them."""


class FreeOpenVinoBackend(OpenVinoBackend):
    """The same with models that leave every dimension free: OpenVINO computes some otherwise."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> PreparedModel:
        if any(node.op_type in INFERRED_FROM_SIZES for node in model.graph.node):
            return super().prepare(model, device)
        model = onnx.ModelProto.FromString(model.SerializeToString())
        for number, info in enumerate(model.graph.input):
            if info.type.HasField("tensor_type"):
                for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                    dim.dim_param = f"d{number}_{axis}"  # in place of its size
        for info in model.graph.output:
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.ClearField("shape")
        del model.graph.value_info[:]
        return super().prepare(model, device)


class OpenClBackend(CpuBackend):
    """OpenCL, and the CPU EP for what has no kernels."""

    providers: ClassVar[list[str]] = ["OpenCLExecutionProvider", "CPUExecutionProvider"]


def suite(
    backend: type[CpuBackend], module: str, *, every: int = 1, always: tuple[str, ...] = ()
) -> dict[str, type[unittest.TestCase]]:
    """The suite's test classes without the exempt cases and those of other devices.

    `every` above 1 takes one case in so many, by name, unless ORT_LITE_WHOLE_SUITE is set, and
    those whose names begin with one of `always`.
    """
    folder = tempfile.mkdtemp(prefix="ort_lite_onnx_models_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["ONNX_MODELS"] = folder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        from onnx.backend.test import BackendTest  # noqa: PLC0415 - warns while imported

        runner = type(
            "Runner", (BackendTest,), {"assert_similar_outputs": staticmethod(assert_similar)}
        )
        classes: dict[str, type[unittest.TestCase]] = runner(
            backend, module, test_kwargs=TOLERANCES
        ).test_cases
    for made in classes.values():
        for name in [n for n in dir(made) if n.startswith("test_")]:
            drawn = name.startswith(always) or _drawn(name, every)
            if not name.endswith("_cpu") or name.startswith(EXEMPT) or not drawn:
                delattr(made, name)
            elif name == EQUAL_SUMS:
                setattr(made, name, lambda _: check_equal_sums(backend.prepare))
    return classes


def assert_similar(
    ref_outputs: Sequence[Any],
    outputs: Sequence[Any],
    rtol: float,
    atol: float,
    model_dir: Any = "",
) -> None:
    """onnx's Runner.assert_similar_outputs, for sequences of scalars too."""
    assert len(outputs) == len(ref_outputs), model_dir
    for one, other in zip(ref_outputs, outputs, strict=True):
        if isinstance(other, list | tuple):
            assert isinstance(one, list | tuple), model_dir
            assert_similar(one, other, rtol, atol, model_dir)
        else:
            _assert_close(np.asarray(one), np.asarray(other), rtol, atol)


def _assert_close(expected: Any, found: Any, rtol: float, atol: float) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if found.dtype == object:
        assert found.tolist() == expected.tolist()
        return
    if found.dtype == ml_dtypes.bfloat16:  # two steps, as onnx's runner has it
        rtol = max(rtol, 2.0**-6)
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def _drawn(name: str, every: int) -> bool:
    """Whether a case is among those taken: the same ones every time, spread over operators."""
    return every == 1 or WHOLE_SUITE in os.environ or zlib.crc32(name.encode()) % every == 0
