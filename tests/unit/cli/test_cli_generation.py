"""`ort-lite bench --generate`: the first token of a decoder, and the tokens after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from benchmarks.decoders.make_decoder import SHAPES, make_decoder
from eps.opencl import FACTORY
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.generation import Decoder

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]
PROMPT = np.array([5, 17, 3, 99], np.int64)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_decoder(tmp_path_factory.mktemp("decoder"), SHAPES["tiny"], seed=3)


def test_both_libraries_generate_the_same_tokens(decoder: Path) -> None:
    mine = Decoder(ort.InferenceSession(decoder, providers=CPU))
    theirs = Decoder(onnxruntime.InferenceSession(decoder, providers=CPU), shares_caches=True)
    tokens, seconds = mine.generate(PROMPT, 6, 12)
    np.testing.assert_array_equal(tokens, theirs.generate(PROMPT, 6, 12)[0])
    assert len(seconds) == 6


@pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
def test_caches_on_a_device_give_the_same_tokens(invoke, decoder: Path) -> None:
    arguments = ("-e", "opencl", "--generate", 5, "--prompt", 4, "--loads", 1)
    shown = invoke("bench", decoder, *arguments, "--against", "onnxruntime").out
    assert "5 of 5 tokens agree from the start" in shown


def test_a_model_of_one_token_a_run_takes_a_prompt_token_by_token(decoder: Path) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("sequence_length", 1)
    for name in ("past_sequence_length", "total_sequence_length"):
        options.add_free_dimension_override_by_name(name, 16)
    step = Decoder(ort.InferenceSession(decoder, options, CPU))
    whole = Decoder(ort.InferenceSession(decoder, providers=CPU))
    np.testing.assert_array_equal(step.generate(PROMPT, 5, 9)[0], whole.generate(PROMPT, 5, 16)[0])
    with pytest.raises(CommandError, match="20 tokens do not fit the model's caches of 16"):
        step.generate(PROMPT, 16, 20)


def test_a_prompt_that_is_no_multiple_of_a_fixed_length_is_refused(decoder: Path) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("sequence_length", 3)
    fixed = Decoder(ort.InferenceSession(decoder, options, CPU))
    with pytest.raises(CommandError, match="4 tokens, which is not a multiple"):
        fixed.generate(PROMPT, 1, 8)


def test_bench_shows_both_times_and_the_rate(invoke, decoder: Path) -> None:
    arguments = ("-e", "cpu", "--generate", 3, "--prompt", 4, "--loads", 2)
    result = invoke("bench", decoder, *arguments, "--against", "onnxruntime", "--json")
    phases = {p["phase"]: p["count"] for p in result.json["phases"]}
    assert phases == {
        "first token": 2, "token": 4, "first token, onnxruntime": 2, "token, onnxruntime": 4,
    }  # fmt: skip
    shown = invoke("bench", decoder, *arguments, "--against", "onnxruntime").out
    assert "tokens per second, onnxruntime" in shown
    assert "3 of 3 tokens agree from the start" in shown


def test_a_model_that_is_no_decoder_is_refused_with_its_ports(invoke, tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "abs", [x], [y])
    opset = helper.make_opsetid("", 21)
    path = tmp_path / "abs.onnx"
    path.write_bytes(
        helper.make_model(graph, ir_version=10, opset_imports=[opset]).SerializeToString()
    )
    result = invoke("bench", path, "-e", "cpu", "--generate", 3)
    assert result.code == ExitCode.USAGE
    assert "not a decoder: inputs x; outputs y" in result.err
