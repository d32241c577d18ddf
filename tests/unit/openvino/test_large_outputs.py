"""Large outputs of known shapes, which OpenVINO writes to arrays of the caller's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import pytest

import ort_lite as ort
from eps.openvino import partition
from eps.openvino.partition import WRITTEN_FROM

if TYPE_CHECKING:
    from pathlib import Path

OPENVINO = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
ROWS, COLUMNS = 512, 600
TEXT = f"""<ir_version: 8, opset_import: ["" : 17]>
g (float[{ROWS}, {COLUMNS}] x) => (float[{ROWS}, {COLUMNS}] large, float[{ROWS}] small,
  int32[{ROWS}, {COLUMNS}] numbers, float[{ROWS}, {COLUMNS}] same) {{
  large = Relu(x) small = ReduceMax <axes = [1], keepdims = 0> (x)
  whole = Floor(x) numbers = Cast <to = 6> (whole) same = Identity(x) }}"""
assert 4 * ROWS * COLUMNS >= WRITTEN_FROM > 4 * ROWS


def model(text: str = TEXT) -> bytes:
    return onnx.parser.parse_model(text).SerializeToString()


def session(source: bytes | str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(source, options, providers=OPENVINO)


def feed(seed: int) -> dict[str, Any]:
    values = np.random.default_rng(seed).integers(-400, 400, (ROWS, COLUMNS)) / 4
    return {"x": values.astype(np.float32)}


def check(answers: Any, x: np.ndarray[Any, Any]) -> None:
    large, small, numbers, same = answers
    np.testing.assert_array_equal(large, np.maximum(x, 0))
    np.testing.assert_array_equal(small, x.max(1))
    np.testing.assert_array_equal(numbers, np.floor(x))
    np.testing.assert_array_equal(same, x)


def test_answers_are_the_callers_own() -> None:
    with session(model()) as opened:
        feeds = [feed(seed) for seed in range(4)]
        answers = [opened.run(None, values) for values in feeds]
        for values, answer in zip(feeds, answers, strict=True):
            check(answer, values["x"])
            assert all(array.flags.writeable for array in answer)
            assert not any(np.may_share_memory(array, values["x"]) for array in answer)
        answers[0][0][:] = 7
        check(answers[1], feeds[1]["x"])
    check(answers[2], feeds[2]["x"])


def test_only_small_outputs_are_copied() -> None:
    with session(model()) as opened:
        opened.run(None, feed(0))
        (part,) = opened._present().prepared.partitions
        assert isinstance(part.compiled, partition.OpenVINOPartition)
        before = part.compiled.copy_counts()
        opened.run(None, feed(1))
        after = part.compiled.copy_counts()
    assert after.to_host - before.to_host == 1
    assert after.bytes_to_host - before.bytes_to_host == 4 * ROWS


def test_threads_have_answers_of_their_own() -> None:
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(5):
                values = feed(10 * seed + number)
                check(opened.run(None, values), values["x"])
        except BaseException as exc:  # noqa: BLE001 - the test fails with it
            failed.append(exc)

    with session(model()) as opened:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


def test_a_context_and_the_c_api_write_them_too(tmp_path: Path) -> None:
    source, path = tmp_path / "m.onnx", tmp_path / "m_ctx.onnx"
    source.write_bytes(model())
    options = ort.SessionOptions()
    for key, value in {
        "session.placement": "all",
        "ep.context_enable": "1",
        "ep.context_file_path": str(path),
    }.items():
        options.add_session_config_entry(key, value)
    ort.InferenceSession(source, options, providers=OPENVINO).close()
    with ort.InferenceSession(path, providers=OPENVINO) as opened:
        for seed in range(3):
            check(opened.run(None, feed(seed)), feed(seed)["x"])


def test_after_many_runs_of_a_small_model_too() -> None:
    with session(model()) as opened:
        (part,) = opened._present().prepared.partitions
        assert isinstance(part.compiled, partition.OpenVINOPartition)
        assert part.compiled.import_again is not None
        part.compiled._runs_before_import = 2
        for seed in range(5):
            check(opened.run(None, feed(seed)), feed(seed)["x"])
        assert part.compiled.import_again is None


@pytest.mark.parametrize("count", [WRITTEN_FROM // 4 - 1, WRITTEN_FROM // 4])
def test_free_shapes_and_sizes_at_the_limit(count: int) -> None:
    for size in (str(count), "n"):
        text = f"""<ir_version: 8, opset_import: ["" : 17]>
            g (float[{size}] x) => (float[{size}] y) {{ y = Abs(x) }}"""
        x = -np.arange(count, dtype=np.float32)
        with session(model(text)) as opened:
            first, second = opened.run(None, {"x": x})[0], opened.run(None, {"x": x - 1})[0]
        np.testing.assert_array_equal(first, -x)
        np.testing.assert_array_equal(second, 1 - x)
