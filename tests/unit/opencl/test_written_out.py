"""`explain()` shows operators that OpenCL computes by several operations, also after a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from opencl_devices import device_names

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from eps.opencl.payload.table import MAX_NOTES, decode_spec, encode_spec
from eps.opencl.program_spec import LaunchSpec, ProgramSpec

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """<ir_version: 10, opset_import: ["" : 23]>
attending (float[1, 2, 8, 16] q, float[1, 2, 8, 16] k, float[1, 2, 8, 16] v)
  => (float[1, 2, 8, 16] y) {
  a = Attention (q, k, v)
  m = MeanVarianceNormalization <axes = [3]> (a)
  n = MeanVarianceNormalization <axes = [2]> (m)
  y = Relu (n)
}"""
NOTES = (
    "Attention x1 written out as MatMul x2, Softmax x1: no kernel of its own",
    "MeanVarianceNormalization x2 written out as Reduce x4: no kernel of its own",
)


@pytest.mark.parametrize("device", device_names())
def test_notes_of_a_partition_say_what_was_written_out(device: str, tmp_path: Path) -> None:
    proto = parser.parse_model(TEXT)
    random = np.random.default_rng(1)
    feed = {n: random.standard_normal((1, 2, 8, 16)).astype(np.float32) for n in "qkv"}
    config = ort.SessionOptions()
    for key, value in {
        "ep.context_enable": "1",
        "ep.context_file_path": str(tmp_path / "c.onnx"),
        "session.placement": "all",
    }.items():
        config.add_session_config_entry(key, value)
    providers = [("OpenCLExecutionProvider", {"device": device})]
    (expected,) = ReferenceEvaluator(proto).run(None, feed)
    with ort.InferenceSession(proto.SerializeToString(), config, providers=providers) as session:
        np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-3, atol=1e-4)
        assert session.explain().partitions[0].notes == NOTES
    with ort.InferenceSession(tmp_path / "c.onnx", providers=providers) as session:
        np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-3, atol=1e-4)
        assert session.explain().partitions[0].notes == NOTES


CALL = LaunchSpec(kernel="k0123456789ab", tasks=1, group=1, arguments=())
SPEC = ProgramSpec(
    source="", options="", calls=(CALL,), arena=64, weights=(), inputs=(), outputs=()
)


def test_a_table_keeps_the_lines_and_older_tables_have_none() -> None:
    noted = replace(SPEC, rewritings=NOTES)
    assert decode_spec(encode_spec(noted), "", (), 64) == noted
    assert "rewritings" not in encode_spec(SPEC)
    assert decode_spec(encode_spec(SPEC), "", (), 64) == SPEC


@pytest.mark.parametrize(
    "rows", ["Attention", [1], ["a\nb"], ["x" * 2000], ["x"] * (MAX_NOTES + 1)]
)
def test_lines_that_no_compile_writes_are_refused(rows: object) -> None:
    with pytest.raises(FormatError, match="rewritings"):
        decode_spec({**encode_spec(SPEC), "rewritings": rows}, "", (), 64)
