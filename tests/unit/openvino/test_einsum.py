"""Einsum runs on OpenVINO as other operators, with onnxruntime's numbers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

OPENVINO = "OpenVINOExecutionProvider"
SIZES = {"b": 2, "i": 3, "j": 4, "n": 5, "d": 6, "h": 7, "w": 3, "c": 2, "k": 4, "r": 3}

PRODUCTS = [
    "ij,jk->ik",
    "ij,jk->ki",
    "ij,kj->ik",
    "bij,bjk->bik",
    "ibh,hnd->ibnd",
    "ibnd,hnd->ibh",
    "ibnd,jbnd->bnij",
    "ijbn,ibnd->bjnd",
    "bhwc,hkc->bhwk",
    "bhwc,wkc->bhwk",
    "bnij,jbnd->ibnd",
    "bcij,bcjk->bikc",
    "i b h, h n d -> n i b d",
    "bijk,kjc->bic",
    "bdij,cnij->bdcn",
    "nhwc,rhkc->nrwhk",
    "ij,j->i",
    "j,ij->i",
    "bij,bj->bi",
    "bind,nd->bin",
    "bid,bjd->bij",
    "bijd,bjd->bij",
    "bid,bid->bi",
    "i,i->",
    "i,j->ij",
    "i,j->ji",
    "bi,j->bij",
    "bi,bi->ib",
    "ij,bji->bij",
    "ijbn->bnij",
    "ij->ij",
    "i->i",
]


def einsum(
    equation: str | bytes, shapes: list[list[int | str]], *, opset: int = 17
) -> onnx.ModelProto:
    """An Einsum of float32 tensors `x0`, `x1`, ... of such shapes."""
    names = [f"x{i}" for i in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node("Einsum", names, ["y"], equation=equation)],
        "g",
        [helper.make_tensor_value_info(n, 1, s) for n, s in zip(names, shapes, strict=True)],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def model(equation: str, *, free: str = "") -> tuple[onnx.ModelProto, list[Any]]:
    """An Einsum, and inputs; the dimensions of the letters `free` have names."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    shapes = [[letter if letter in free else SIZES[letter] for letter in term] for term in terms]
    chance = np.random.default_rng(1)
    values = [
        chance.standard_normal([SIZES[letter] for letter in term], np.float32) for term in terms
    ]
    return einsum(equation, shapes), values


def session(proto: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO])


@pytest.mark.parametrize("free", ["", "bi", "bijkndhwcr"], ids=["fixed", "batch", "free"])
@pytest.mark.parametrize("equation", PRODUCTS)
def test_a_product_has_onnxruntimes_numbers(equation: str, free: str) -> None:
    proto, values = model(equation, free=free)
    feed = {f"x{i}": value for i, value in enumerate(values)}
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed)
    with session(proto) as mine:
        mine.disable_fallback()
        assert {part.ep for part in mine.explain().partitions} == {OPENVINO}
        (output,) = mine.run(None, feed)
    assert output.dtype == expected.dtype
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_random_products_have_onnxruntimes_numbers() -> None:
    """Each letter in one tensor, in both, or summed; orders by chance."""
    chance = np.random.default_rng(7)
    letters = list("bijndk")
    equations = set()
    for roles in itertools.product("ABSLR", repeat=5):
        sides = {
            "left": [x for x, role in zip(letters, roles, strict=False) if role in "ABSL"],
            "right": [x for x, role in zip(letters, roles, strict=False) if role in "ABSR"],
            "out": [x for x, role in zip(letters, roles, strict=False) if role in "ABLR"],
        }
        if not (sides["left"] and sides["right"]):
            continue
        words = {side: "".join(chance.permutation(word)) for side, word in sides.items()}
        equations.add(f"{words['left']},{words['right']}->{words['out']}")
    for equation in chance.permutation(sorted(equations))[:60]:
        test_a_product_has_onnxruntimes_numbers(str(equation), "")


@pytest.mark.parametrize(
    ("equation", "opset", "why"),
    [
        ("ii,ij->ij", 17, "a letter twice"),
        ("ij,jk", 17, "not of one or two tensors to an output"),
        ("ij,jk,kd->id", 17, "not of one or two tensors to an output"),
        ("...ij,jk->...ik", 17, "a letter twice or none"),
        ("ij,kd->ik", 17, "it sums what one tensor alone has"),
        ("ij->i", 17, "it sums what one tensor alone has"),
        ("ii->i", 17, "a letter twice"),
        ("ij,jk->ik", 12, "from opset 13 on"),
    ],
)
def test_others_stay_on_the_cpu_ep(equation: str, opset: int, why: str) -> None:
    terms = equation.split("->")[0].split(",")
    proto = einsum(equation, [["a"] * len(term.replace("...", "x")) for term in terms], opset=opset)
    with session(proto) as mine:
        assert why in str(mine.explain())


def test_sizes_that_could_make_up_for_each_other_stay_on_the_cpu_ep() -> None:
    """2 x 6 and 3 x 4 are 12 each, and onnxruntime raises."""
    proto = einsum("ind,hnd->ih", [["i", "n", "d"], ["h", "k", "e"]])
    feed = {"x0": np.ones((5, 2, 6), np.float32), "x1": np.ones((7, 3, 4), np.float32)}
    with session(proto) as mine:
        assert "sizes of several letters that are summed are not known" in str(mine.explain())
        with pytest.raises(ort.OrtLiteError):
            mine.run(None, feed)


def test_a_wrong_size_of_a_summed_letter_is_an_error() -> None:
    with session(einsum("ij,jk->ik", [["i", "a"], ["b", "k"]])) as mine:
        mine.disable_fallback()
        feed = {"x0": np.ones((2, 3), np.float32), "x1": np.ones((4, 5), np.float32)}
        with pytest.raises(ort.OrtLiteError):
            mine.run(None, feed)


def test_an_equation_that_is_not_text_is_reported() -> None:
    proto = einsum(b"ij,jk->i\xff", [[2, 2], [2, 2]])
    with pytest.raises(ort.OrtLiteError):
        session(proto)


def test_a_context_has_the_product(tmp_path: Path) -> None:
    proto, values = model("ibnd,jbnd->bnij", free="i")
    path = tmp_path / "context.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(path))
    feed = {f"x{i}": value for i, value in enumerate(values)}
    with ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO]) as first:
        (compiled,) = first.run(None, feed)
    with ort.InferenceSession(path, providers=[OPENVINO]) as second:
        np.testing.assert_array_equal(second.run(None, feed)[0], compiled)
