"""Decoders of language models on OpenCL devices: one partition, weights of 4 bits, shared ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from decoder_runs import (
    ROOM,
    STEPS,
    VARIANTS,
    assert_close,
    fix_sizes,
    run_in_onnxruntime,
    run_steps,
    write_decoder,
)

import ort_lite as ort
from ctx_formats.container_reader import read_container

if TYPE_CHECKING:
    from pathlib import Path

OPENCL = ["OpenCLExecutionProvider"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_decoder_is_one_partition_and_gives_onnxruntimes_numbers(
    variant: str, tmp_path: Path
) -> None:
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
    with ort.InferenceSession(path, providers=OPENCL) as session:
        (partition,) = session.explain().partitions
        assert {node.ep for node in partition.nodes} == set(OPENCL)
        assert_close(run_steps(session, shape), run_in_onnxruntime(path, shape))


def test_contexts_of_prompts_and_of_tokens_share_their_weights(tmp_path: Path) -> None:
    """Weights stay of 4 bits in the payload, and are in it once; so does the embedding, which is
    the output layer's."""
    path, shape = write_decoder(tmp_path, "plain"), VARIANTS["plain"]
    contexts = {tokens: tmp_path / f"decoder_{tokens}.onnx" for tokens in sorted(set(STEPS))}
    with ort.SharedContexts() as group:
        for tokens, context in contexts.items():
            options = group.join(fix_sizes(ort.SessionOptions(), tokens))
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_file_path", str(context))
            ort.InferenceSession(path, options, OPENCL).close()
    (payload,) = tmp_path.glob("*.bin")
    container = read_container(memoryview(payload.read_bytes()))
    assert len(container.entries) == len(contexts)
    size = path.with_suffix(".onnx.data").stat().st_size
    assert container.weights["0"].size <= 1.02 * size
    right = run_in_onnxruntime(path, shape)
    with ort.SharedContexts() as group:
        sessions = {
            tokens: ort.InferenceSession(context, group.join(ort.SessionOptions()), OPENCL)
            for tokens, context in contexts.items()
        }
    assert_close(run_steps(sessions, shape), right)
    assert sessions[1].get_inputs()[2].shape == [1, shape.kv_heads, ROOM, shape.head_size]
    for session in sessions.values():
        session.close()


def test_a_reloaded_decoder_gives_the_same_bits(tmp_path: Path) -> None:
    path, shape = write_decoder(tmp_path, "packed"), VARIANTS["packed"]
    options = fix_sizes(ort.SessionOptions(), 1)
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "context.onnx"))
    with ort.InferenceSession(path, options, OPENCL) as compiled:
        before = run_steps(compiled, shape, (1, 1, 1))
    with ort.InferenceSession(tmp_path / "context.onnx", providers=OPENCL) as reloaded:
        after = run_steps(reloaded, shape, (1, 1, 1))
    for first, second in zip(before, after, strict=True):
        for name, value in first.items():
            np.testing.assert_array_equal(second[name], value)
