"""Plans for input shapes come out of the model cache with the first runs of a later session."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort
from ort_lite.model.fixed_inputs import FixedInputs
from ort_lite.model_cache.kept_choice import MOST_INPUTS, ChoiceFile
from ort_lite.model_cache.secret import CacheSecret
from ort_lite.options import RUNS_WITH_CACHE
from ort_lite.providers.provider_choice import ProviderChoice
from ort_lite.start import fix_model
from ort_lite.start.specialized_plans import SpecializedPlans

if TYPE_CHECKING:
    from pathlib import Path

CPU, OPENVINO = "CPUExecutionProvider", "OpenVINOExecutionProvider"
MANY = 1000
"""Runs with the same shapes, which no test makes."""
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, size] x, int64 mode) => (float[b, s] z)
    <int64 one = {1}, int64[1] all = {-1}> {
    flag = Equal(mode, one)
    y = If(flag) <
        then_branch = t () => (float[b, s] p) { p = MatMul(x, w) },
        else_branch = e () => (float[b, s] q) { h = MatMul(x, w) q = Neg(h) }>
    shape = Shape(x) size = ReduceProd <keepdims = 0> (shape) n = Cast <to = 1> (size)
    d = Div(y, n) f = Reshape(d, all) v = Tanh(f) z = Reshape(v, shape)
}"""
Values = dict[str, np.ndarray[Any, Any]]


def model(seed: int = 0) -> bytes:
    proto = onnx.parser.parse_model(MODEL)
    weights = np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return bytes(proto.SerializeToString())


def feed(rows: int = 3, mode: int = 1) -> Values:
    x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
    return {"x": x, "mode": np.array(mode)}


def options(cache: Path | None, runs: int, **entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_session_config_entry("session.specialize_after_runs", str(runs))
    if cache is not None:
        made.add_session_config_entry("session.ep_context_cache", "1")
        made.add_session_config_entry("session.ep_context_cache_dir", str(cache))
    for key, value in entries.items():
        made.add_session_config_entry(f"session.{key}", value)
    return made


def plans(
    cache: Path | None,
    runs: int,
    values: Values | None = None,
    *,
    source: bytes | None = None,
    providers: list[str] | None = None,
    **entries: str,
) -> list[str]:
    """What `explain()` says of plans after six runs, all of which have onnxruntime's answer."""
    source, values = source or model(), values or feed()
    (expected,) = onnxruntime.InferenceSession(source, providers=[CPU]).run(None, values)
    made = options(cache, runs, **entries)
    with ort.InferenceSession(source, made, providers=providers or [CPU]) as one:
        for _ in range(6):
            np.testing.assert_allclose(one.run(None, values)[0], expected, rtol=1e-5, atol=1e-6)
            one.background_compile(None)
        return [line for line in one.explain().notes if "specialized plan" in line]


@pytest.mark.parametrize("providers", [[CPU], [OPENVINO, CPU], None], ids=["CPU", "OpenVINO", "-"])
def test_a_later_session_has_the_plan_at_once(
    cache: Path, providers: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = plans(cache, 2, providers=providers)
    assert "for x [3, 4], mode = 1" in made

    def refuse(*_: object) -> None:
        raise AssertionError("the model is read again")

    monkeypatch.setattr(fix_model, "fix_model", refuse)
    (loaded,) = plans(cache, MANY, providers=providers)
    assert "for x [3, 4], mode = 1" in loaded


def test_the_first_answer_does_not_wait_for_it(cache: Path) -> None:
    plans(cache, 2)
    with ort.InferenceSession(model(), options(cache, MANY), providers=[CPU]) as one:
        one.run(None, feed())
        one.run(None, feed())
        assert one.background_compile().state == "off"
        one.run(None, feed())
        assert one.background_compile(None).state == "done"


@pytest.mark.parametrize("values", [feed(2), feed(mode=0)], ids=["shape", "flag"])
def test_other_inputs_have_no_plan(cache: Path, values: Values) -> None:
    assert plans(cache, 2)
    assert plans(cache, MANY, values) == []


def test_each_set_of_inputs_has_its_plan(cache: Path) -> None:
    for rows in (2, 3):
        assert plans(cache, 2, feed(rows))
    for rows in (2, 3):
        (line,) = plans(cache, MANY, feed(rows))
        assert f"x [{rows}, 4]" in line


def test_runs_are_counted_for_inputs_that_are_not_in_the_cache(cache: Path) -> None:
    assert plans(cache, 2)
    assert plans(cache, 3, feed(2))


@pytest.mark.parametrize(
    "other",
    [
        {"source": model(1)},
        {"placement": "all"},
        {"ep_context_cache": "0"},
        {"providers": [OPENVINO, CPU]},
    ],
    ids=["weights", "option", "no cache", "providers"],
)
def test_a_plan_is_for_one_model_and_its_options(cache: Path, other: dict[str, Any]) -> None:
    assert plans(cache, 2)
    assert plans(cache, MANY, **other) == []


def test_a_cache_that_does_not_learn_has_no_plans(cache: Path) -> None:
    assert plans(cache, 2, ep_context_cache_shapes="0")
    assert plans(cache, MANY) == []
    assert plans(cache, 2)
    assert plans(cache, MANY, ep_context_cache_shapes="0") == []


def test_fewer_runs_are_enough_where_later_sessions_have_the_plan(cache: Path) -> None:
    for folder, learns, expected in (
        (cache, "1", "done"),
        (cache / "other", "0", "off"),
        (None, "1", "off"),
    ):
        made = options(folder, 0, ep_context_cache_shapes=learns)
        made = made.without("session.specialize_after_runs")
        with ort.InferenceSession(model(), made, providers=[CPU]) as one:
            for _ in range(RUNS_WITH_CACHE + 2):
                one.run(None, feed())
            assert one.background_compile(None).state == expected
    with ort.InferenceSession(model(), options(cache, MANY), providers=[CPU]) as one:
        for _ in range(3):
            one.run(None, feed())
        assert one.background_compile(None).state == "done"


@pytest.mark.parametrize(("variable", "runs"), [("", 256), ("cache", 32)])
def test_the_variable_of_the_cache_counts(
    monkeypatch: pytest.MonkeyPatch, variable: str, runs: int
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", variable)
    assert ort.SessionOptions().runs_before_plans() == runs


def test_no_plans_are_asked_for(cache: Path) -> None:
    assert plans(cache, 2)
    assert plans(cache, 0) == []


def test_a_session_without_a_cache_leaves_nothing(cache: Path) -> None:
    assert plans(None, 2)
    assert not cache.exists()


def test_a_session_that_bypasses_the_cache_leaves_no_plan(cache: Path, tmp_path: Path) -> None:
    made = options(cache, 2)
    made.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    with ort.InferenceSession(model(), made, providers=[CPU]) as one:
        for _ in range(4):
            one.run(None, feed())
        assert one.background_compile(None).state == "done"
    assert not cache.exists()


def test_a_list_of_inputs_that_was_lost_is_made_again(cache: Path) -> None:
    assert plans(cache, 2)
    shutil.rmtree(cache / "v1" / "choices")  # as after two processes that wrote at once
    assert plans(cache, MANY) == []
    assert plans(cache, 2), "out of the cache"
    assert plans(cache, MANY)


def test_a_plan_of_the_cache_is_not_compared_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context has one node for many, so that a plan on the CPU EP seems to have more."""
    assert plans(cache, 2)
    monkeypatch.setattr(SpecializedPlans, "_objection", lambda *_: "it has more nodes")
    assert not any("more nodes" in line for line in plans(cache, MANY))
    assert any("more nodes" in line for line in plans(cache, 2, feed(2)))


def test_a_plan_that_is_gone_is_made_again(cache: Path) -> None:
    assert plans(cache, 2)
    shutil.rmtree(cache / "v1" / "entries")
    assert plans(cache, MANY)


def test_a_damaged_payload_is_compiled_again(cache: Path) -> None:
    assert plans(cache, 2, providers=[OPENVINO, CPU])
    for file in (cache / "v1" / "objects").iterdir():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.chmod(0o600)
        file.write_bytes(data)
    assert plans(cache, MANY, providers=[OPENVINO, CPU])


@pytest.mark.parametrize("content", [b"", b"{}", b'{"inputs": 3}', b"\xff"])
def test_a_damaged_list_of_inputs_means_none(cache: Path, content: bytes) -> None:
    assert plans(cache, 2)
    (file,) = (cache / "v1" / "choices").iterdir()
    file.write_bytes(content)
    assert plans(cache, MANY) == []


def test_the_list_keeps_the_choices_of_a_model(tmp_path: Path) -> None:
    file = ChoiceFile(tmp_path / "one.json")
    choice = ProviderChoice(names=(CPU,), opened={CPU: {}})
    file.keep("a", choice, "")
    file.keep_inputs("a", "x", "")
    file.keep_inputs("b", "y", "")
    file.keep("b", choice, "")
    assert (file.find("a"), file.find("b")) == (choice, choice)
    assert (file.find_inputs("a"), file.find_inputs("b")) == (("x",), ("y",))


def test_the_list_has_an_end(tmp_path: Path) -> None:
    file = ChoiceFile(tmp_path / "one.json")
    texts = [str(number) for number in range(MOST_INPUTS + 2)]
    for text in texts:
        file.keep_inputs("a", text, "")
    assert file.find_inputs("a") == tuple(texts[2:])
    file.keep_inputs("a", texts[3], "")
    assert file.find_inputs("a") == (texts[2], *texts[4:], texts[3])


def test_a_list_without_the_key_of_the_cache_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    ChoiceFile(path).keep_inputs("a", "x", "")
    secret = CacheSecret(b"k" * 32)
    assert ChoiceFile(path, secret).find_inputs("a") == ()
    ChoiceFile(path, secret).keep_inputs("a", "y", "")
    assert ChoiceFile(path, secret).find_inputs("a") == ("y",)


def test_entries_that_are_no_texts_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    file = ChoiceFile(path)
    file._write("inputs", "a", ["x", 3, None], "")
    assert file.find_inputs("a") == ("x",)
    file._write("inputs", "a", "x", "")
    assert file.find_inputs("a") == ()


def test_equal_texts_are_equal_inputs() -> None:
    one = FixedInputs(shapes={"x": (2, 3), "m": ()}, values={"m": np.array(1)})
    others = (
        FixedInputs(shapes={"x": (3, 2), "m": ()}, values={"m": np.array(1)}),
        FixedInputs(shapes={"x": (23,), "m": ()}, values={"m": np.array(1)}),
        FixedInputs(shapes={"x": (2, 3), "m": ()}, values={"m": np.array(2)}),
        FixedInputs(shapes={"x": (2, 3), "m": (1,)}, values={"m": np.array([1])}),
        FixedInputs(shapes={"x": (2, 3), "m": ()}),
    )
    assert len({str(each) for each in (one, *others)}) == 1 + len(others)
