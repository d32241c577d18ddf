"""A peer that cannot run what it is compared on: said in a line, not in a traceback."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from ort_lite.cli.arrays import random_feed
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.peers import open_peer, run_named
from ort_lite.model.info import NodeArg


@pytest.fixture
def lookup(tmp_path):
    """Picks from a table of two rows, as BERT does by the kind of token."""
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64])],
        [numpy_helper.from_array(np.array([2, 3], np.float32), "table")],
    )
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "lookup.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    )
    return path


def test_random_indices_are_in_range_of_the_smallest_tables(lookup) -> None:
    with ort.InferenceSession(lookup, providers=["CPUExecutionProvider"]) as session:
        feed = random_feed(session.get_inputs(), {}, seed=0)
        found = run_named(session, feed)
    expected = run_named(open_peer("onnxruntime", lookup), feed)
    np.testing.assert_array_equal(found["y"], expected["y"])
    assert set(feed["ids"].tolist()) == {0, 1}


def test_random_bytes_are_not_all_zero_and_one() -> None:
    feed = random_feed([NodeArg("image", "tensor(uint8)", [256])], {}, seed=0)
    assert len(set(feed["image"].tolist())) > 2


def test_a_peer_that_fails_is_named_with_a_hint(lookup) -> None:
    with pytest.raises(CommandError, match=r"onnxruntime fails on these inputs.*=7") as refused:
        run_named(open_peer("onnxruntime", lookup), {"ids": np.full(64, 7)})
    assert refused.value.exit_code is ExitCode.DIFFERENT
    assert "--inputs" in refused.value.hint


def test_what_ort_lite_raises_stays_its_own_error(lookup) -> None:
    with pytest.raises(ort.OrtLiteError, match="7"):
        run_named(open_peer("cpu", lookup), {"ids": np.full(64, 7)})
