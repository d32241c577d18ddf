"""Products of bytes by AVX-512 VNNI: where it is used, and that it changes no number."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from device_models import NodeSet
from quantised_lstms import add_lstm
from system_limits import WINDOWS

from ctx_formats.lean_dataclass import replace
from eps.opencl import provider
from eps.opencl.cl import constants as cl
from eps.opencl.cl.devices import Device, Platform
from eps.opencl.runtime.describe_target import describe_target, quad_sums_of
from eps.opencl.runtime.device import ListedDevice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]

RANDOM = np.random.default_rng(60)
OPTIONS: list[Any] = [
    {},
    pytest.param(
        {"platform": "portable"}, marks=pytest.mark.skipif(WINDOWS, reason="PoCL has no wheel here")
    ),
]


def add_product(
    nodes: NodeSet, sizes: tuple[int, int, int], block: int, *, has_zeros: bool
) -> None:
    """A MatMulNBits of M, K and N with accuracy level 4."""
    rows, depth, width = sizes
    blocks = -(-depth // block)
    inputs: list[np.ndarray[Any, np.dtype[Any]]] = [
        RANDOM.standard_normal((rows, depth)).astype(np.float32),
        RANDOM.integers(0, 256, (width, blocks, block // 2)).astype(np.uint8),
        RANDOM.uniform(0.5, 1.5, (width, blocks)).astype(np.float32),
    ]
    if has_zeros:
        inputs.append(RANDOM.integers(0, 256, (width, -(-blocks // 2))).astype(np.uint8))
    sizes_of_blocks = {"K": depth, "N": width, "bits": 4, "block_size": block}
    nodes.add(
        "MatMulNBits", inputs, (1, 2, 3), domain="com.microsoft", accuracy_level=4,
        **sizes_of_blocks,
    )  # fmt: skip


def answer_in_both_forms(
    nodes: NodeSet, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Array], list[Array]]:
    """Answers with VNNI and without; skips a CPU or a driver that has none."""
    forms = set[str]()
    with_vnni = nodes.run_with(options)

    def describe_without(listed: ListedDevice, templates: str = "auto") -> Target:
        target = describe_target(listed, templates)
        forms.add(target.quad_sums)
        return replace(target, quad_sums="")

    monkeypatch.setattr(provider, "describe_target", describe_without)
    without = nodes.run_with(options)
    if forms == {""}:
        pytest.skip("this CPU has no AVX-512 VNNI, or its driver is too old")
    return with_vnni, without


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products_of_bytes_are_equal_to_the_bit_with_vnni_and_without(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = NodeSet()
    for rows, width, block, has_zeros in (
        (1, 64, 32, False), (3, 48, 128, True), (19, 80, 16, True), (40, 70, 256, False),
        (8, 24, 64, False),
    ):  # fmt: skip
        add_product(nodes, (rows, 300, width), block, has_zeros=has_zeros)
    for mine, theirs in zip(*answer_in_both_forms(nodes, options, monkeypatch), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products_of_integers_are_exact_with_vnni_and_without(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = NodeSet()
    for rows, depth, width in ((9, 64, 40), (1, 37, 8), (20, 130, 33), (5, 12, 4)):
        weights = np.clip(np.rint(RANDOM.standard_normal((depth, width)) * 30), -128, 127)
        x = RANDOM.choice(np.array([0, 1, 127, 128, 255], np.uint8), (rows, depth))
        nodes.add("MatMulInteger", [x, weights.astype(np.int8)], (1,))
    filters = np.clip(np.rint(RANDOM.standard_normal((24, 16, 3, 3)) * 30), -128, 127)
    image = RANDOM.integers(0, 256, (1, 16, 9, 8)).astype(np.uint8)
    nodes.add("ConvInteger", [image, filters.astype(np.int8)], (1,), pads=[1, 1, 1, 1])
    right = nodes.run_elsewhere()
    for answers in answer_in_both_forms(nodes, options, monkeypatch):
        for mine, theirs in zip(answers, right, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_states_of_an_lstm_are_equal_to_the_bit_with_vnni_and_without(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = NodeSet()
    for sizes, given in (
        ((7, 1, 8, 48), "bhc"), ((5, 6, 3, 37), "bhz"), ((3, 9, 5, 100), "b"), ((2, 4, 1, 1), "h"),
    ):  # fmt: skip
        add_lstm(nodes, sizes, given, direction="bidirectional")
    for mine, theirs in zip(*answer_in_both_forms(nodes, options, monkeypatch), strict=True):
        np.testing.assert_array_equal(mine, theirs)


class DriverPlatform(Platform):
    """A platform with one text for all properties."""

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self._answer = name.encode() + b"\0"

    def _bytes(self, parameter: int) -> bytes:
        return self._answer


class DriverDevice(Device):
    """A device with some properties, as the driver's bytes."""

    def __init__(self, properties: Mapping[int, bytes]) -> None:
        super().__init__(1)
        self._properties = properties

    def _bytes(self, parameter: int) -> bytes:
        return self._properties[parameter]


INTEL, POCL = "Intel(R) OpenCL", "Portable Computing Language"


@pytest.mark.parametrize(
    ("platform", "version", "lanes", "flag", "form"),
    [
        (INTEL, "2026.22.10.0.01_160000", 16, "avx512_vnni", "OL_VNNI_NAME"),
        (INTEL, "2027.3.1", 16, "avx512_vnni", "OL_VNNI_NAME"),
        (INTEL, "2026.9.1", 16, "avx512_vnni", ""),
        (INTEL, "2025.100.1", 16, "avx512_vnni", ""),
        (INTEL, "of another form", 16, "avx512_vnni", ""),
        (INTEL, "2026.22.10", 8, "avx512_vnni", ""),
        (INTEL, "2026.22.10", 16, "avx_vnni", ""),
        (POCL, "3.0-rc2", 16, "avx512_vnni", "OL_VNNI_ASSEMBLY"),
        (POCL, "3.0-rc2", 8, "avx512_vnni", ""),
    ],
)
def test_vnni_is_used_where_the_cpu_and_the_compiler_have_it(
    platform: str, version: str, lanes: int, flag: str, form: str
) -> None:
    properties = {
        cl.CL_DRIVER_VERSION: version.encode(),
        cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_INT: struct.pack("<I", lanes),
    }
    listed = ListedDevice("0.0", DriverPlatform(platform), DriverDevice(properties))
    assert quad_sums_of(listed, {"avx2", flag}) == form
