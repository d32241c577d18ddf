"""onnxruntime's functions that check arguments, beside those of the installed onnxruntime."""

from __future__ import annotations

from typing import Any

import pytest
from onnxruntime.capi import onnxruntime_inference_collection as theirs

from ort_lite import InvalidArgument
from ort_lite.capi import onnxruntime_inference_collection as ours


@pytest.mark.parametrize(
    ("providers", "options"),
    [
        (None, None),
        (["a"], None),
        (["a", "b"], None),
        ([("a", {1: 2}), "b"], None),
        (["a", "b"], [{1: 2}, {}]),
    ],
)
def test_provider_arguments_are_normalized_as_there(providers: Any, options: Any) -> None:
    found = ours.check_and_normalize_provider_args(providers, options, ["a", "b"])
    assert found == theirs.check_and_normalize_provider_args(providers, options, ["a", "b"])


@pytest.mark.parametrize(
    ("providers", "options"),
    [(3, None), ([3], None), (["a"], 3), (["a"], ["x"]), (["a", "b"], [{}]), ([("a", {})], [{}])],
)
def test_provider_arguments_are_refused_as_there(providers: Any, options: Any) -> None:
    for module in (ours, theirs):
        with pytest.raises(ValueError, match="provider"):
            module.check_and_normalize_provider_args(providers, options, ["a", "b"])


@pytest.mark.parametrize(("providers", "found"), [(["c"], ["c"]), (["a", "a"], ["a"])])
def test_a_provider_that_is_unknown_or_doubled_is_a_warning_as_there(
    providers: list[str], found: list[str]
) -> None:
    for module in (ours, theirs):
        with pytest.warns(UserWarning, match="not in available provider names|Duplicate provider"):
            names, _ = module.check_and_normalize_provider_args(providers, None, ["a", "b"])
        assert names == found


@pytest.mark.parametrize("kind", ["cpu", "cuda", "cann", "dml", "gpu", "npu", "webgpu"])
def test_kinds_of_devices_have_the_numbers_that_they_have_there(kind: str) -> None:
    assert ours.get_ort_device_type(kind) == theirs.get_ort_device_type(kind)
    vendor = theirs.get_vendor_id_for_device_type(kind)
    assert ours.get_vendor_id_for_device_type(kind) == vendor


def test_a_kind_of_device_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Unsupported device type: abacus, expected one of"):
        ours.get_ort_device_type("abacus")
    assert ours.get_vendor_id_for_device_type("abacus") is None
