"""Changes of a signed context model and its files, none of which is accepted."""

from __future__ import annotations

import shutil
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from blake3 import blake3
from context_models import OPENVINO
from onnx import helper, numpy_helper
from signed_models import TRUST, answer, assert_untrusted, compiled, options
from small_models import feed, mlp, model, tied

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ctx_formats.notes import read_notes
from ctx_formats.signatures import read_signed
from ort_lite.context.shared_reading import COPY_LIMITS
from ort_lite.testing.context_file import ContextFile, payload_middle, remove_digests

if TYPE_CHECKING:
    from collections.abc import Callable

    from signed_models import Key

    from ctx_formats.ep_context import EpContextNode

OPENCL = "OpenCLExecutionProvider"
EMBED = pytest.mark.parametrize("embed", ["0", "1"], ids=["external", "embedded"])


def split() -> onnx.ModelProto:
    """Two compiled parts around a node that the CPU EP runs, with weights that stay."""
    random = np.random.default_rng(3)
    weights = {name: random.standard_normal((4, 4)).astype(np.float32) for name in ("w", "v")}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Softmax", ["a"], ["b"], name="softmax"),
        helper.make_node("Binarizer", ["b"], ["c"], "binary", domain="ai.onnx.ml", threshold=0.3),
        helper.make_node("MatMul", ["c", "v"], ["d"], name="last"),
        helper.make_node("Softmax", ["d"], ["y"], name="softmax_too"),
    ]
    made = model(nodes, [("x", [2, 4])], [("y", [2, 4])], weights)
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    return made


@pytest.fixture
def made(tmp_path: Path, key: Key) -> ContextFile:
    return compiled(tmp_path / "a", mlp(), key)


@EMBED
@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
def test_what_is_signed_as_it_is_written_loads(
    tmp_path: Path, key: Key, stranger: Key, ep: str, embed: str
) -> None:
    made = compiled(tmp_path / "a", mlp(), key, ep, embed)
    np.testing.assert_array_equal(answer(made.path, key.public, ep), answer(made.path, None, ep))
    assert_untrusted(lambda: answer(made.path, stranger.public, ep), match="alone, expected")
    data = made.path.read_bytes()
    made.path.write_bytes(bytes(read_signed(memoryview(data)).content))
    assert_untrusted(lambda: answer(made.path, key.public, ep), match="not signed")
    np.testing.assert_array_equal(answer(made.path, None, ep), answer(made.path, None, ep))


def _resealed(change: Callable[[EpContextNode], EpContextNode]) -> Callable[[ContextFile], None]:
    """An edit after which the seal, which anybody can compute, fits again."""

    def edit(node: EpContextNode) -> EpContextNode:
        notes = read_notes(node)
        assert notes is not None
        return notes.seal_into(change(node))

    return lambda file: _keeping_signatures(file, lambda f: f.edit(edit))


def _keeping_signatures(file: ContextFile, change: Callable[[ContextFile], None]) -> None:
    """Change the model and put its signatures behind it again."""
    data = file.path.read_bytes()
    entries = data[len(read_signed(memoryview(data)).content) :]
    file.path.write_bytes(data[: -len(entries)])
    change(file)
    file.path.write_bytes(file.path.read_bytes() + entries)


def _hostile(file: ContextFile) -> None:
    """Another payload, with digests, notes and seal as ort_lite would write them."""
    whole = file.container()
    at = payload_middle(whole)
    (entry,) = read_container(memoryview(whole)).entries.values()
    payload = bytearray(whole[entry.offset : entry.offset + entry.size])
    payload[at - entry.offset] ^= 0xFF
    digest = blake3(bytes(payload)).hexdigest()
    file.put_container(remove_digests(whole, lambda _: bytes(payload)))

    def edit(node: EpContextNode) -> EpContextNode:
        notes = read_notes(node)
        assert notes is not None
        return replace(notes, payload_blake3=digest).seal_into(node)

    _keeping_signatures(file, lambda f: f.edit(edit))


def _proto(change: Callable[[onnx.ModelProto], object]) -> Callable[[ContextFile], None]:
    def edit(file: ContextFile) -> None:
        proto = onnx.load(file.path, load_external_data=False)
        change(proto)
        file.path.write_bytes(proto.SerializeToString())

    return lambda file: _keeping_signatures(file, edit)


CHANGES: dict[str, Callable[[ContextFile], None]] = {
    "a hostile payload with right digests and seal": _hostile,
    "an attribute and the seal": _resealed(lambda n: replace(n, max_size=4096)),
    "the node's name, which the seal leaves out": _resealed(lambda n: replace(n, name="other")),
    "notes taken away": lambda f: _keeping_signatures(
        f, lambda g: g.edit(lambda n: replace(n, notes=""))
    ),
    "metadata": _proto(lambda p: helper.set_model_props(p, {"ort_config": "{}"})),
    "the name of an input": _proto(
        lambda p: [
            setattr(p.graph.input[0], "name", "z"),
            p.graph.node[0].input.__setitem__(0, "z"),
        ]
    ),
    "a dimension": _proto(
        lambda p: setattr(p.graph.output[0].type.tensor_type.shape.dim[0], "dim_param", "n")
    ),
    "a denotation": _proto(
        lambda p: setattr(
            p.graph.input[0].type.tensor_type.shape.dim[0], "denotation", "DATA_BATCH"
        )
    ),
    "a plain node more": _proto(
        lambda p: [
            p.graph.node.append(helper.make_node("Neg", ["y"], ["negated"])),
            setattr(p.graph.output[0], "name", "negated"),
        ]
    ),
    "a function": _proto(
        lambda p: p.functions.append(
            helper.make_function(
                "d", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], p.opset_import
            )
        )
    ),
    "a doc string": _proto(lambda p: setattr(p, "doc_string", "hello")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_model_is_refused(made: ContextFile, key: Key, name: str) -> None:
    before = made.path.read_bytes()
    CHANGES[name](made)
    assert made.path.read_bytes() != before
    assert_untrusted(lambda: answer(made.path, key.public), match="wrongly signed")


def test_a_payload_with_other_bytes_is_refused(made: ContextFile, key: Key) -> None:
    data = bytearray(made.container())
    data[payload_middle(bytes(data))] ^= 1
    made.put_container(bytes(data))
    with pytest.raises(ort.InvalidGraph) as found:
        answer(made.path, key.public)
    assert found.value.reason == "integrity", "the digest in the signed notes says it"


def test_payloads_of_two_signed_contexts_cannot_be_swapped(
    made: ContextFile, tmp_path: Path, key: Key
) -> None:
    other = compiled(tmp_path / "b", mlp(4), key)
    mine, theirs = made.container(), other.container()
    made.put_container(theirs)
    other.put_container(mine)
    for file, rows in ((made, 2), (other, 4)):
        with pytest.raises(ort.InvalidGraph) as found:
            answer(file.path, key.public, proto=mlp(rows))
        assert found.value.reason in ("integrity", "missing_payload")


def test_a_signed_context_may_move_with_its_payload_and_get_another_name(
    made: ContextFile, tmp_path: Path, key: Key
) -> None:
    """Which of two signed models a name stands for is not what a signature says."""
    assert made.payload is not None
    expected = answer(made.path, None)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(made.path, moved / "renamed.onnx")
    shutil.move(made.payload, moved / made.payload.name)
    np.testing.assert_array_equal(answer(moved / "renamed.onnx", key.public), expected)


def test_an_older_signed_context_is_as_good_as_a_newer_one(
    made: ContextFile, tmp_path: Path, key: Key
) -> None:
    """Replay is not stopped: docs/trust.md says so."""
    assert made.payload is not None
    newer = compiled(tmp_path / "b", mlp(4), key)
    assert newer.payload is not None
    shutil.copy(made.path, newer.path)
    shutil.copy(made.payload, newer.payload)
    answer(newer.path, key.public)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps")
def test_a_payload_of_any_size_is_copied_where_a_signature_is_asked_for(
    made: ContextFile, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that may write to a mapped file could change it once it is verified."""
    monkeypatch.setitem(COPY_LIMITS, "auto", 0)  # no payload is small

    def is_mapped(**entries: str) -> bool:
        loaded = ort.InferenceSession(made.path, options(**entries), providers=[OPENVINO])
        with loaded:
            return str(made.payload) in Path("/proc/self/maps").read_text()

    trusting = {TRUST.replace(".", "__"): str(key.public)}
    assert is_mapped()
    assert not is_mapped(**trusting)
    assert is_mapped(**trusting, session__ep_context_map="1")


def test_plain_nodes_beside_compiled_ones_are_covered(tmp_path: Path, key: Key) -> None:
    made = compiled(tmp_path / "a", split(), key)
    expected = answer(made.path, key.public, proto=split())
    np.testing.assert_array_equal(answer(made.path, None, proto=split()), expected)

    def other_threshold(proto: onnx.ModelProto) -> None:
        (node,) = (n for n in proto.graph.node if n.op_type == "Binarizer")
        node.attribute[0].f = 0.9

    _proto(other_threshold)(made)
    assert (answer(made.path, None, proto=split()) != expected).any()
    assert_untrusted(lambda: answer(made.path, key.public, proto=split()))


def with_weights(folder: Path, key: Key) -> Path:
    """A plain model whose weights lie in a file beside it, signed."""
    folder.mkdir()
    path = folder / "m.onnx"
    onnx.save(mlp(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    key.sign(path)
    return path


def _load_plain(path: Path, key: Key, **entries: str) -> Any:
    made = options(key.public, **entries)
    with ort.InferenceSession(path, made, providers=["CPUExecutionProvider"]) as session:
        return session.run(None, feed(mlp()))[0]


def test_weights_beside_a_model_are_covered(tmp_path: Path, key: Key) -> None:
    path = with_weights(tmp_path / "a", key)
    _load_plain(path, key)
    weights = path.with_name("w.bin")
    data = bytearray(weights.read_bytes())
    data[5] ^= 1
    weights.write_bytes(data)
    assert_untrusted(lambda: _load_plain(path, key), match=r"w\.bin")
    data[5] ^= 1
    weights.write_bytes(data + b"\0")
    assert_untrusted(lambda: _load_plain(path, key), match=r"w\.bin")


def test_weights_are_covered_wherever_they_come_from(tmp_path: Path, key: Key) -> None:
    """From another folder, or out of memory, they have to be the ones that were signed."""
    path = with_weights(tmp_path / "a", key)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    weights = path.with_name("w.bin").read_bytes()
    (elsewhere / "w.bin").write_bytes(weights)
    path.with_name("w.bin").unlink()
    entry = {"session__model_external_initializers_file_folder_path": str(elsewhere)}
    _load_plain(path, key, **entry)
    (elsewhere / "w.bin").write_bytes(weights[::-1])
    assert_untrusted(lambda: _load_plain(path, key, **entry))
    for buffer in (weights, weights[::-1]):
        made = options(key.public)
        made.add_external_initializers_from_files_in_memory(["w.bin"], [buffer], [len(buffer)])
        if buffer is weights:
            ort.InferenceSession(path, made, providers=["CPUExecutionProvider"]).close()
        else:
            assert_untrusted(
                lambda made=made: ort.InferenceSession(path, made, ["CPUExecutionProvider"])
            )


def test_weights_of_a_context_model_are_covered(tmp_path: Path, key: Key) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    source = folder / "m.onnx"
    extra = split()
    extra.graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype=np.float32) * 2, "u"))
    extra.graph.node.append(helper.make_node("Det", ["u"], ["det"], name="det"))
    extra.graph.output.append(helper.make_tensor_value_info("det", 1, []))
    source.write_bytes(extra.SerializeToString())
    made = options(
        ep__context_enable="1",
        ep__context_sign_key=str(key.private),
        ep__context_model_external_initializers_file_name="kept.bin",
    )
    ort.InferenceSession(source, made, [OPENVINO], disabled_optimizers=["ConstantFolding"]).close()
    kept = folder / "kept.bin"
    assert kept.exists()
    answer(folder / "m_ctx.onnx", key.public, proto=extra)
    kept.write_bytes(kept.read_bytes()[::-1])
    assert_untrusted(lambda: answer(folder / "m_ctx.onnx", key.public, proto=extra))


def shared(folder: Path, key: Key, ep: str = OPENVINO) -> list[Path]:
    """Two models that have weights in common, in one payload file."""
    folder.mkdir()
    with ort.SharedContexts() as group:
        for i, sign in enumerate((1.0, -1.0)):
            source = folder / f"m{i}.onnx"
            source.write_bytes(tied(sign).SerializeToString())
            made = group.join(options(ep__context_enable="1"))
            made.add_session_config_entry("ep.context_sign_key", str(key.private))
            ort.InferenceSession(source, made, providers=[ep]).close()
    return [folder / f"m{i}_ctx.onnx" for i in range(2)]


@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
def test_shared_weights_are_covered_with_the_places_where_they_lie(
    tmp_path: Path, key: Key, ep: str
) -> None:
    first, second = shared(tmp_path / "a", key, ep)
    (listed,) = read_signed(memoryview(first.read_bytes())).records[0].files
    assert listed.part == "head"
    with ort.SharedContexts() as group:
        for path in (first, second):
            made = group.join(options(key.public))
            with ort.InferenceSession(path, made, providers=[ep]) as session:
                session.run(None, feed(tied()))
    payload = first.parent / listed.location
    container = read_container(memoryview(payload.read_bytes()))
    run = next(iter(container.weights.values()))
    data = bytearray(payload.read_bytes())
    data[run.offset + 100] ^= 1
    payload.write_bytes(data)
    with pytest.raises(ort.InvalidGraph) as found:
        answer(first, key.public, ep, tied())
    assert found.value.reason == "integrity"
    data[run.offset + 100] ^= 1
    data[-1:] = b"\0\0"
    payload.write_bytes(data)
    with pytest.raises(ort.InvalidGraph) as found:
        answer(first, key.public, ep, tied())
    assert found.value.reason in ("format", "untrusted")


def test_another_head_of_a_shared_container_is_refused(tmp_path: Path, key: Key) -> None:
    """The second group's file has the same payload names, sound digests and other places."""
    first, _ = shared(tmp_path / "a", key)
    (listed,) = read_signed(memoryview(first.read_bytes())).records[0].files
    payload = first.parent / listed.location
    data = payload.read_bytes()
    container = read_container(memoryview(data))
    moved = data[: container.head_size].replace(b"ort_lite 0.1.0", b"ort_lite 9.9.9")
    if moved == data[: container.head_size]:
        pytest.fail("the producer is not where it was thought to be")
    payload.write_bytes(_with_index_crc(moved) + data[container.head_size :])
    assert_untrusted(lambda: answer(first, key.public, proto=tied()), match="head")
    answer(first, None, proto=tied())


def _with_index_crc(head: bytes) -> bytes:
    """`head` with the CRC-32 of its index right again: docs/formats/container.md."""
    size = int.from_bytes(head[32:40], "little")
    end = 40 + size
    zeroed = bytearray(head[:end])
    zeroed[end - 9 : end - 1] = bytes(8)
    crc = zlib.crc32(zeroed)
    return head[: end - 9] + crc.to_bytes(8, "little") + head[end - 1 :]


@EMBED
def test_a_context_of_other_software_can_be_signed(tmp_path: Path, key: Key, embed: str) -> None:
    """It has no digest, so that the signature covers the whole payload file."""
    made = compiled(tmp_path / "a", mlp(), key, embed=embed)
    made.put_container(remove_digests(made.container()))
    made.edit(lambda node: replace(node, notes=""))
    assert_untrusted(lambda: answer(made.path, key.public))
    key.sign(made.path)
    expected = answer(made.path, None)
    np.testing.assert_array_equal(answer(made.path, key.public), expected)
    data = bytearray(made.container())
    data[payload_middle(bytes(data))] ^= 1
    if embed == "1":
        _keeping_signatures(made, lambda f: f.put_container(bytes(data)))
    else:
        made.put_container(bytes(data))
    assert_untrusted(lambda: answer(made.path, key.public))


def test_the_model_s_configuration_does_not_switch_trust_off(
    tmp_path: Path, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ORT_LOAD_CONFIG_FROM_MODEL replaces every other entry of the user's."""
    proto = mlp()
    helper.set_model_props(proto, {"ort_config": '{"session_options": {}}'})
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    assert_untrusted(lambda: ort.InferenceSession(path, options(key.public)))
    key.sign(path)
    with ort.InferenceSession(path, options(key.public)) as session:
        assert session.get_session_options().get_session_config_entry(TRUST) == str(key.public)


def test_a_fallback_after_a_failed_run_asks_for_the_signature_too(
    made: ContextFile, key: Key
) -> None:
    with ort.InferenceSession(made.path, options(key.public), providers=[OPENVINO]) as session:
        made.path.write_bytes(mlp().SerializeToString())
        assert_untrusted(lambda: session.set_providers([OPENVINO]))
