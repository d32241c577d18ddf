"""com.microsoft Tokenizer, which skl2onnx writes for scikit-learn's vectorizers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
PLAIN = {"mark": 0, "mincharnum": 1, "pad_value": "#"}


def model_of(attributes: dict[str, Any]) -> bytes:
    node = helper.make_node(
        "Tokenizer", ["x"], ["y"], domain="com.microsoft", **{**PLAIN, **attributes}
    )
    graph = helper.make_graph(
        [node],
        "tokens",
        [helper.make_tensor_value_info("x", TensorProto.STRING, None)],
        [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return data


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (["the cat", "a bb ccc"], {"tokenexp": "[a-z]+"}),
        ([["the cat"], ["a bb ccc"]], {"tokenexp": "[a-z]+", "mincharnum": 2}),
        ([["a", "b c"]], {"tokenexp": "[a-z]+"}),
        (["abé ç"], {"tokenexp": r"\w+"}),
        (["éé é"], {"tokenexp": "é+", "mincharnum": 2}),
        (["abc de", "f"], {"tokenexp": r"\b\w\w+\b"}),
        (["ab", "aab"], {"tokenexp": "a|ab"}),
        (["abab"], {"tokenexp": "a*"}),
        (["aab"], {"tokenexp": "^a"}),
        (["the cat", "a,bb ccc,"], {"separators": [",", r"\s"]}),
        (["the cat", "a,bb ccc,"], {"separators": [r"\s", ","], "mark": 1, "mincharnum": 2}),
        (["aXbXXc"], {"separators": ["X", "XX"]}),
        (["aXXb"], {"separators": ["X|XX"]}),
        (["aXb"], {"separators": ["b"], "tokenexp": "[a-z]+"}),
        (["thé", ""], {"separators": [""]}),
        (["thé", ""], {"separators": [""], "mark": 1}),
        (["abb", "b", "cab"], {"separators": ["b*"]}),
        (["aXb"], {"separators": ["", "X"]}),
        (["", ""], {"tokenexp": "[a-z]+"}),
        (["123"], {"tokenexp": "[a-z]+", "mark": 1}),
        (["123", "a1"], {"tokenexp": "[a-z]+", "mark": 1}),
        (np.zeros(0, object), {"tokenexp": "a"}),
        (np.zeros((2, 0), object), {"tokenexp": "a"}),
        ([["", ""]], {"separators": ["a"]}),
    ],
)
def test_tokens_are_those_of_onnxruntime(x: Any, attributes: dict[str, Any]) -> None:
    data, feed = model_of(attributes), {"x": np.array(x, object)}
    (expected,) = onnxruntime.InferenceSession(data, providers=CPU).run(None, feed)
    with ort.InferenceSession(data, providers=CPU) as session:
        (found,) = session.run(None, feed)
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, "neither separators nor tokenexp"),
        ({"tokenexp": "["}, "missing ]"),
        ({"separators": ["["]}, "missing ]"),
        ({"tokenexp": "a", "mincharnum": 0}, "mincharnum is 0"),
        ({"separators": [""], "mincharnum": 2}, "single characters"),
    ],
)
def test_wrong_attributes_are_told(attributes: dict[str, Any], said: str) -> None:
    data = model_of(attributes)
    with pytest.raises(Exception, match=r"[Tt]okenizer"):
        onnxruntime.InferenceSession(data, providers=CPU)
    with pytest.raises(ort.OrtLiteError, match=said):
        ort.InferenceSession(data, providers=CPU)


def test_texts_of_three_dimensions_are_refused() -> None:
    with (
        ort.InferenceSession(model_of({"tokenexp": "a"}), providers=CPU) as session,
        pytest.raises(ort.OrtLiteError, match=r"either \[C\] or \[N\]\[C\]"),
    ):
        session.run(None, {"x": np.array([[["a"]]], object)})


def test_without_re2_no_shorter_match_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ort.OrtLiteError, match=r"'a\|ab' has alternatives.*install google-re2"):
        ort.InferenceSession(model_of({"tokenexp": "a|ab"}), providers=CPU)
    with ort.InferenceSession(model_of({"tokenexp": "[a-z]+"}), providers=CPU) as session:
        (found,) = session.run(None, {"x": np.array(["ab c"], object)})
    assert found.tolist() == [["ab", "c"]]
