"""LabelEncoder and OneHotEncoder: every form of table, what is in none, and hostile ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from parity.against_onnxruntime import agree, onnxruntime_answers
from parity.node_cases import NodeCase
from unit.cpu.single_node import run_node
from unit.cpu_contrib.peer import both

from ort_lite.status import Fail, RuntimeException

ML = "ai.onnx.ml"
WORDS = np.array([["b", "zz"], ["a", "b"]], object)
NUMBERS = np.array([3, 1, 7, -2])


def encoded(x: np.ndarray, version: int = 4, **attributes: Any) -> Any:
    return run_node("LabelEncoder", x, domain=ML, domain_version=version, **attributes).tolist()


def test_the_first_version_counts_places() -> None:
    classes = {"classes_strings": ["a", "b"], "default_int64": -7, "default_string": "none"}
    (mine,), (theirs,) = both("LabelEncoder", [WORDS], domain=ML, keys_strings=["a", "b"],
                              values_int64s=[0, 1], default_int64=-7)  # fmt: skip
    assert encoded(WORDS, 1, **classes) == mine.tolist() == theirs.tolist()
    assert encoded(np.array([1, 0, 2, -1]), 1, **classes) == ["b", "a", "none", "none"]


def test_tables_may_be_tensors_of_any_type() -> None:
    keys = numpy_helper.from_array(np.array([1, 3], np.int16))
    values = numpy_helper.from_array(np.array([0.5, 1.5]))
    default = numpy_helper.from_array(np.array([-1.0]))
    found = encoded(NUMBERS.astype(np.int16), keys_tensor=keys, values_tensor=values,
                    default_tensor=default)  # fmt: skip
    assert found == [1.5, 0.5, -1.0, -1.0]


@pytest.mark.parametrize(("version", "found"), [(2, "?"), (4, "gap")])
def test_nan_is_a_key_since_version_4(version: int, found: str) -> None:
    case = NodeCase(
        name="nan",
        op="LabelEncoder",
        inputs=[np.array([np.nan, 1, 2], np.float32)],
        attributes={
            "keys_floats": [1.0, float("nan")],
            "values_strings": ["one", "gap"],
            "default_string": "?",
        },
        domain=ML,
        domain_version=version,
    )
    agree(case)
    (theirs,) = onnxruntime_answers(case.model(), case.feed())
    assert theirs.tolist() == [found, "one", "?"]


def test_a_category_that_is_in_no_list_is_a_row_of_zeros_or_an_error() -> None:
    def one_hot(x: np.ndarray, zeros: int) -> Any:
        return run_node("OneHotEncoder", x, domain=ML, zeros=zeros, cats_int64s=[7, 1, 3])

    assert one_hot(NUMBERS, 1).tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert one_hot(np.array([[1.9]]), 1).tolist() == [[[0, 1, 0]]]
    with pytest.raises(RuntimeException, match="Unknown Category and zeros = 0: -2"):
        one_hot(NUMBERS, 0)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"keys_int64s": [1, 2], "values_int64s": [1]}, "2 keys for 1 values"),
        ({"keys_int64s": [1, 2]}, "neither of values_"),
    ],
    ids=["lengths", "no values"],
)
def test_a_broken_table_is_refused(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(Fail, match=says):
        encoded(NUMBERS, 2, **attributes)
