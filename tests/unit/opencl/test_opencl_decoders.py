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
    draw_tokens,
    fix_sizes,
    run_in_onnxruntime,
    run_steps,
    step_feed,
    write_decoder,
)

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ort_lite.ep import SupportsBoundRuns

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.ep import CopyCounts

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


def copies_of(session: ort.InferenceSession) -> CopyCounts:
    """Copies that runs of the session's one partition made so far."""
    (partition,) = session._present().prepared.partitions
    assert isinstance(partition.compiled, SupportsBoundRuns)
    return partition.compiled.copy_counts()


@pytest.mark.parametrize("variant", ["plain", "half"])
def test_a_cache_in_a_device_tensor_is_appended_to_in_place(variant: str, tmp_path: Path) -> None:
    """Present is bound to past's memory: the same logits, and no copy of a cache."""
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
    steps = (7, *[1] * 16)
    right = run_in_onnxruntime(path, shape, steps)
    with ort.InferenceSession(path, providers=OPENCL) as session:
        binding, past = session.io_binding(), 0
        empty = step_feed(shape, np.zeros((1, 1), np.int64), 0, None)
        caches = {
            name: ort.OrtValue.ortvalue_from_numpy(np.full_like(value, 9), "opencl", 0)
            for name, value in empty.items()
            if name.startswith("past_key_values.")
        }
        for name, cache in caches.items():
            binding.bind_ortvalue_input(name, cache)
            present = name.replace("past_key_values", "present")
            binding.bind_ortvalue_output(present, cache)
        binding.bind_output("logits")
        for tokens, answers in zip(draw_tokens(shape, steps), right, strict=True):
            feed = step_feed(shape, tokens, past, None)
            past += tokens.shape[1]
            for name in ("input_ids", "attention_mask"):
                binding.bind_cpu_input(name, feed[name])
            before = copies_of(session)
            session.run_with_iobinding(binding)
            after = copies_of(session)
            assert after.on_device == before.on_device
            assert after.to_device - before.to_device == 2
            assert after.to_host - before.to_host == 1
            (logits,) = [v for v in binding.get_outputs() if v.shape()[-1] == shape.vocabulary]
            assert_close([{"logits": logits.numpy()}], [{"logits": answers["logits"]}])
        for name, cache in caches.items():
            expected = right[-1][name.replace("past_key_values", "present")]
            found = cache.numpy()
            assert_close([{name: found[:, :, :past]}], [{name: expected}])
            assert (found[:, :, past:] == 9).all()


@pytest.mark.parametrize(("variant", "growth"), [("plain", 1.02), ("half", 1.2)])
def test_contexts_of_prompts_and_of_tokens_share_their_weights(
    variant: str, growth: float, tmp_path: Path
) -> None:
    """Weights stay of 4 bits in the payload, and are in it once; so does the embedding, which is
    the output layer's. Scales of float16 become float32, 2 bytes more for every 18."""
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
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
    assert container.weights["0"].size <= growth * size
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


@pytest.mark.parametrize("variant", ["packed", "half packed"])
def test_a_reloaded_decoder_gives_the_same_bits(variant: str, tmp_path: Path) -> None:
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
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


def test_weights_and_tables_of_a_token_are_read_where_they_are_mapped(tmp_path: Path) -> None:
    """Only the scales of normalisations are copied: kernels read the others in order, or a row."""
    path, shape = write_decoder(tmp_path, "plain"), VARIANTS["plain"]
    options = fix_sizes(ort.SessionOptions(), 1)
    with ort.InferenceSession(path, options, OPENCL) as session:
        (partition,) = session._present().prepared.partitions
        spec = partition.compiled.executable.spec  # type: ignore[attr-defined]
        sizes = {weight.digest: weight for weight in spec.weights}
        copied = sizes.keys() - spec.stream_digests
        assert len(copied) <= 2 * shape.layers + 1
        assert len(sizes) > 8 * shape.layers
        norms = [call for call in spec.calls if call.kernel.startswith("layernorm_")]
        taken = {one.index for call in norms for one in call.arguments if hasattr(one, "index")}
        assert {spec.weights[index].digest for index in taken} == copied
