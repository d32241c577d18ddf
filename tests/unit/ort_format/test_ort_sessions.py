"""Sessions over models in the ORT format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from ort_models import CPU, mixed, run_in_onnxruntime, save_by_onnxruntime, with_version
from small_models import feed, mlp, sandwich
from system_limits import needs_leases

import ort_lite as ort
from ctx_formats.onnx_model import GraphDef
from ort_lite.model import loader
from ort_lite.start.ort_conversion import write_ort_file

OPENVINO = "OpenVINOExecutionProvider"
ROOT = Path(__file__).parents[3]
MAP = "session.use_memory_mapped_ort_model"
DIRECTLY = "session.use_ort_model_bytes_directly"
IN_PLACE = "session.use_ort_model_bytes_for_initializers"


@pytest.fixture(scope="module")
def saved() -> bytes:
    return save_by_onnxruntime(mixed()[0])


def options_with(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"session.{key}", value)
    return options


def require_equal(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-6)


@pytest.mark.parametrize("road", ["path", "bytes", "bytearray", "mapped", "in place"])
def test_every_road_computes_what_onnxruntime_computes(
    saved: bytes, road: str, tmp_path: Path
) -> None:
    fed = mixed()[1]
    path = tmp_path / "m.ORT"
    path.write_bytes(saved)
    options = ort.SessionOptions()
    source: object = path if road in ("path", "mapped") else saved
    if road == "mapped":
        options.add_session_config_entry(MAP, "1")
    elif road == "bytearray":
        source = bytearray(saved)
    elif road == "in place":
        source = bytearray(saved)
        options.add_session_config_entry(DIRECTLY, "1")
        options.add_session_config_entry(IN_PLACE, "1")
    with ort.InferenceSession(source, options, providers=CPU) as session:
        if road == "bytearray":
            source[:] = bytes(len(source))  # the session has its own copy
        del source
        require_equal(session.run(None, fed), run_in_onnxruntime(saved, fed))
        assert session.get_modelmeta().producer_name == "tests"


def test_weights_of_bytes_that_may_stay_in_place_are_not_copied(saved: bytes) -> None:
    data = bytearray(saved)
    options = ort.SessionOptions()
    for key in (DIRECTLY, IN_PLACE):
        options.add_session_config_entry(key, "1")
    loaded = loader.load(data, options)
    assert loaded.model.graph.initializers["w"].data.obj is data


@needs_leases
def test_a_mapped_file_that_is_overwritten_changes_no_number(saved: bytes, tmp_path: Path) -> None:
    fed = mixed()[1]
    path = tmp_path / "m.ort"
    path.write_bytes(saved)
    options = ort.SessionOptions()
    options.add_session_config_entry(MAP, "1")
    with ort.InferenceSession(path, options, providers=CPU) as session:
        writer = "import sys; open(sys.argv[1], 'r+b').write(bytes(int(sys.argv[2])))"
        subprocess.run([sys.executable, "-c", writer, path, str(len(saved))], check=True)
        require_equal(session.run(None, fed), run_in_onnxruntime(saved, fed))


def test_the_format_is_chosen_by_option_then_name_or_identifier(
    saved: bytes, tmp_path: Path
) -> None:
    onnx_bytes = mlp().SerializeToString()
    (tmp_path / "model.bin").write_bytes(saved)
    (tmp_path / "onnx.ort").write_bytes(onnx_bytes)
    with pytest.raises(ort.InvalidProtobuf, match="protobuf parsing failed"):
        ort.InferenceSession(tmp_path / "model.bin", providers=CPU)
    with pytest.raises(ort.Fail, match=r"onnx.ort failed:ORT model verification failed\."):
        ort.InferenceSession(tmp_path / "onnx.ort", providers=CPU)
    chosen = options_with(load_model_format="ORT")
    ort.InferenceSession(tmp_path / "model.bin", chosen, providers=CPU).close()
    with pytest.raises(ort.Fail, match="ORT model verification failed"):
        ort.InferenceSession(onnx_bytes, chosen, providers=CPU)
    other = options_with(load_model_format="ONNX")
    ort.InferenceSession(tmp_path / "onnx.ort", other, providers=CPU).close()
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(saved, other, providers=CPU)


def test_an_old_file_is_upgraded_and_computes_the_same(saved: bytes) -> None:
    fed = mixed()[1]
    old = with_version(saved, "4", resolver=False)
    with ort.InferenceSession(old, providers=CPU) as session:
        require_equal(session.run(None, fed), run_in_onnxruntime(old, fed))


def test_strict_workspace_verification_is_refused(saved: bytes) -> None:
    strict = options_with(strict_workspace_verification="1")
    with pytest.raises(ort.Fail, match="partition-time workspace reservations are not serialized"):
        ort.InferenceSession(saved, strict, providers=CPU)


def test_initializers_can_be_replaced() -> None:
    data, fed = save_by_onnxruntime(mlp()), feed(mlp())
    options = ort.SessionOptions()
    with ort.InferenceSession(data, providers=CPU) as session:
        (before,) = session.run(None, fed)
    bias = ort.OrtValue.ortvalue_from_numpy(np.full(3, 1000, np.float32))
    options.add_initializer("b", bias)
    with ort.InferenceSession(data, options, providers=CPU) as session:
        (after,) = session.run(None, fed)
    assert after.min() > before.max()


WITHOUT_SCHEMAS = """
import sys
import numpy as np
from pathlib import Path

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnx", "google"):
            raise ImportError("onnx is not here")

sys.meta_path.insert(0, Refuses())
import eps.cpu.schema_table as table
def refuse():
    raise AssertionError("the schema table was loaded")
table.load_table = refuse
import eps.cpu.schemas, eps.cpu.resolve
eps.cpu.schemas.load_table = eps.cpu.resolve.load_table = refuse
import ort_lite

folder = Path(sys.argv[1])
feed = dict(np.load(folder / "feed.npz"))
with ort_lite.InferenceSession(folder / "m.ort", providers=["CPUExecutionProvider"]) as session:
    outputs = session.run(None, feed)
np.savez(folder / "found.npz", *outputs)
assert not any(name.split(".")[0] == "onnx" for name in sys.modules)
"""


def test_kernels_are_found_where_onnx_and_the_schema_table_are_absent(
    saved: bytes, tmp_path: Path
) -> None:
    fed = mixed()[1]
    (tmp_path / "m.ort").write_bytes(saved)
    np.savez(tmp_path / "feed.npz", **fed)
    command = [sys.executable, "-c", WITHOUT_SCHEMAS, str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT)
    with np.load(tmp_path / "found.npz") as found:
        require_equal([found[name] for name in found.files], run_in_onnxruntime(saved, fed))


def test_a_file_without_defaults_computes_with_those_of_the_schemas() -> None:
    """Without the mark of a file that onnxruntime saved, attributes may be missing."""
    data, fed = save_by_onnxruntime(mixed()[0]), mixed()[1]
    unmarked = data.replace(b"com.microsoft.nchwc", b"com.microsoft.other")
    with ort.InferenceSession(unmarked, providers=CPU) as session:
        require_equal(session.run(None, fed), run_in_onnxruntime(data, fed))


@pytest.mark.parametrize("embed", ["0", "1"])
def test_contexts_are_compiled_from_the_ort_format(tmp_path: Path, embed: str) -> None:
    path = tmp_path / "m.ort"
    path.write_bytes(save_by_onnxruntime(mlp()))
    fed = feed(mlp())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", embed)
    with ort.InferenceSession(path, options, providers=[OPENVINO]) as session:
        expected = session.run(None, fed)
    with ort.InferenceSession(tmp_path / "m_ctx.onnx", providers=[OPENVINO]) as session:
        require_equal(session.run(None, fed), expected)
    require_equal(expected, run_in_onnxruntime(path.read_bytes(), fed))


def test_the_compiler_takes_the_ort_format_by_path_and_bytes(tmp_path: Path) -> None:
    data, fed = save_by_onnxruntime(mlp()), feed(mlp())
    path = tmp_path / "m.ort"
    path.write_bytes(data)
    options = ort.SessionOptions()
    options.add_provider(OPENVINO)
    for source in (str(path), data):
        compiled = ort.ModelCompiler(options, source, embed_compiled_data_into_model=True)
        with ort.InferenceSession(compiled.compile_to_bytes(), providers=[OPENVINO]) as session:
            require_equal(session.run(None, fed), run_in_onnxruntime(data, fed))


def test_the_model_cache_keeps_what_is_compiled_from_the_ort_format(tmp_path: Path) -> None:
    path = tmp_path / "m.ort"
    path.write_bytes(save_by_onnxruntime(mlp()))
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    states = []
    for _ in range(2):
        with ort.InferenceSession(path, options, providers=[OPENVINO]) as session:
            require_equal(
                session.run(None, feed(mlp())), run_in_onnxruntime(path.read_bytes(), feed(mlp()))
            )
            states.append(session._state.model.cache.state)
    assert states == ["stored", "hit"]


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_context_model_in_the_ort_format_reloads(tmp_path: Path, embed: str) -> None:
    proto = sandwich()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", embed)
    with ort.InferenceSession(tmp_path / "m.onnx", options, providers=[OPENVINO]) as session:
        expected = session.run(None, feed(proto))
    loaded = loader.load(str(tmp_path / "m_ctx.onnx"), ort.SessionOptions())
    write_ort_file(loaded.model, tmp_path / "m_ctx.ort")
    with ort.InferenceSession(tmp_path / "m_ctx.ort", providers=[OPENVINO]) as session:
        require_equal(session.run(None, feed(proto)), expected)
    with pytest.raises(Exception, match="is not compatible with any execution provider"):
        run_in_onnxruntime((tmp_path / "m_ctx.ort").read_bytes(), feed(proto))


@pytest.mark.parametrize("provider", [*CPU, OPENVINO])
@pytest.mark.parametrize("version", ["4", "6"])
def test_dimensions_are_fixed_by_name_in_every_version(provider: str, version: str) -> None:
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 2] x) => (float[N, 2] y) { h = Neg (x)  y = Relu (h) }
        """
    )
    data = with_version(save_by_onnxruntime(proto), version, resolver=version == "6")
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 3)
    fed = {"x": np.array([[1, -2], [-3, 4], [5, -6]], np.float32)}
    with ort.InferenceSession(data, options, providers=[provider]) as session:
        assert session.get_inputs()[0].shape == [3, 2]
        require_equal(session.run(None, fed), run_in_onnxruntime(data, fed))
        with pytest.raises(ort.InvalidArgument, match="invalid dimensions"):
            session.run(None, {"x": fed["x"][:2]})


def test_nodes_of_bodies_that_onnxruntime_appended_are_read_in_order() -> None:
    """onnxruntime has no kernel for float16 here, and inserts casts with the highest indices."""
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float16[2] x) => (float16[2] y)
        {
          y = If (c) <
            then_branch = yes () => (float16[2] a) { s = Sinh (x)  n = Neg (s)  a = Sinh (n) },
            else_branch = no () => (float16[2] b) { b = Identity (x) }
          >
        }
        """
    )
    data = save_by_onnxruntime(proto)
    fed = {"c": np.ones((), np.bool_), "x": np.array([0.5, -1], np.float16)}
    expected = run_in_onnxruntime(data, fed)
    for provider in (*CPU, OPENVINO):
        with ort.InferenceSession(data, providers=[provider]) as session:
            np.testing.assert_allclose(session.run(None, fed)[0], expected[0], rtol=1e-3)
    (node,) = loader.load(data, ort.SessionOptions()).model.graph.nodes
    known = {"c", "x"}
    body = node.attributes["then_branch"].value
    assert isinstance(body, GraphDef)
    for inner in body.nodes:
        assert known.issuperset(inner.inputs)
        known.update(inner.outputs)


@pytest.mark.parametrize("version", ["4", "6"])
def test_a_session_answers_while_the_ort_format_is_compiled_behind_it(
    version: str, tmp_path: Path
) -> None:
    data = with_version(save_by_onnxruntime(mlp()), version, resolver=version == "6")
    (tmp_path / "m.ort").write_bytes(data)
    fed, cache = feed(mlp()), str(tmp_path / "cache")
    expected = run_in_onnxruntime(data, fed)
    options = options_with(
        ep_compile_in_background="1",
        placement="all",
        ep_context_cache="1",
        ep_context_cache_dir=cache,
    )
    with ort.InferenceSession(tmp_path / "m.ort", options, providers=[OPENVINO]) as session:
        while session.background_compile().state == "compiling":
            require_equal(session.run(None, fed), expected)
        assert session.background_compile().state == "done"
        assert OPENVINO in session.explain().node_counts()
        require_equal(session.run(None, fed), expected)
    with ort.InferenceSession(tmp_path / "m.ort", options, providers=[OPENVINO]) as session:
        assert session.load_report().cache.state == "hit"
        require_equal(session.run(None, fed), expected)


def test_a_context_model_with_the_name_of_the_ort_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_provider(OPENVINO)
    compiler = ort.ModelCompiler(options, str(tmp_path / "m.onnx"))
    with pytest.raises(ort.InvalidArgument, match="context models are written in ONNX"):
        compiler.compile_to_file(str(tmp_path / "c.ort"))
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
