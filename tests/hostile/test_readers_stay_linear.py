"""Readers do what is in a file once, however often it is named, and say what is wrong with it."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from blake3 import blake3
from golden.released import RELEASES, Released, unpack
from onnx import TensorProto, helper

import ort_lite
from ctx_formats.adapter_file import read_adapter
from ctx_formats.container import Container, Entry
from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError
from eps.cpu import FACTORY
from eps.cpu.compile_graph import FREE_FOLDS
from eps.opencl.payload import format as payload_format
from eps.opencl.payload.format import ALIGNMENT, HEAD, MAGIC, VERSION
from ort_lite.cli.arrays import load_arrays
from ort_lite.cli.exit_codes import CommandError
from ort_lite.ep.interface import FusedNode
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.result import RESULT_FILE, read_results
from ort_lite.hw.yaml_text import MAX_BYTES
from ort_lite.model import loader
from ort_lite.model_cache import transfer
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import import_entries
from ort_lite.options import SessionOptions
from ort_lite.status import InvalidGraph, InvalidProtobuf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Header = dict[str, Any]

CPU = ["CPUExecutionProvider"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return unpack(RELEASES[-1], tmp_path_factory.mktemp("released"))


# OpenCL payloads


@pytest.fixture(scope="module")
def payload(released: Released) -> bytes:
    """Of a partition with free dimensions, which may have many programs."""
    data = released.file("contexts/pocl/external_OpenCLExecutionProvider.bin").read_bytes()
    container = read_container(memoryview(data))
    fixed = bytes(container.payload(next(iter(container.entries))))

    def freed(header: Header) -> bytes:
        header["model"] = {"graph": header["pool"], "weights": [], "whole": True}
        return b""

    return bytes(forged(fixed, freed))


def forged(data: bytes, change: Callable[[Header], bytes]) -> memoryview:
    """`data` with its header changed and digested again, and more behind it."""
    _, _, size, _, _ = HEAD.unpack_from(data)
    header = json.loads(data[HEAD.size : HEAD.size + size])
    body = data[-(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT :]
    more = change(header)
    raw = json.dumps(header).encode()
    base = -(-(HEAD.size + len(raw)) // ALIGNMENT) * ALIGNMENT
    body += bytes(-len(body) % ALIGNMENT) + more
    head = HEAD.pack(MAGIC, VERSION, len(raw), base + len(body), blake3(raw).digest())
    return memoryview(head + raw + bytes(base - HEAD.size - len(raw)) + body)


def body_size(data: bytes) -> int:
    _, _, size, _, _ = HEAD.unpack_from(data)
    found = len(data) - -(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT
    return found + -found % ALIGNMENT


def test_a_source_of_many_programs_is_inflated_and_digested_once(
    payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    inflated: list[int] = []
    real = payload_format._inflate
    monkeypatch.setattr(
        payload_format,
        "_inflate",
        lambda data, most: inflated.append(len(data)) or real(data, most),
    )

    def repeat(header: Header) -> bytes:
        header["variants"] = header["variants"][:1] * 500
        return b""

    found = payload_format.read_payload(forged(payload, repeat), 128)
    assert len(found.variants) == 500
    assert len(inflated) == 1


def test_sources_of_all_programs_together_are_bounded(payload: bytes) -> None:
    text = zlib.compress(b" " * (payload_format.MAX_SOURCE // 4), 9)
    section = text + bytes(-len(text) % ALIGNMENT)

    def grow(header: Header) -> bytes:
        (first, *_) = header["variants"]
        place = {"size": len(text), "blake3": blake3(text).hexdigest()}
        header["variants"] = [
            {**first, "source": {**place, "offset": body_size(payload) + i * len(section)}}
            for i in range(6)
        ]
        return section * 6

    with pytest.raises(FormatError, match=r"source: cut, or too long, .* in a payload"):
        payload_format.read_payload(forged(payload, grow), 128)


def test_weights_that_share_bytes_are_refused(payload: bytes) -> None:
    def overlap(header: Header) -> bytes:
        (where, offset, size, digest), *_ = header["weights"]
        assert size > 1
        header["weights"].append([where, offset, size - 1, digest[::-1]])
        return b""

    with pytest.raises(FormatError, match=r"weight: from byte \d+, expected behind the one before"):
        payload_format.read_payload(forged(payload, overlap), 128)


# Archives of the model cache


def tar_of(*members: tuple[str, bytes, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content, kind in (("archive.json", b'{"format": 1}', b"0"), *members):
            info = tarfile.TarInfo(name)
            info.size, info.type = len(content), kind
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_thousands_of_headers_of_one_member_are_refused(tmp_path: Path) -> None:
    """tarfile calls itself for each, and in some versions of Python ends the archive there."""
    about = tar_of()[:1024]
    header = tar_of(("h", b"9 mtime=1\n", b"x"))[1024:2048]
    (tmp_path / "seed.tar").write_bytes(about + header * 3000 + bytes(1024))
    with pytest.raises(FormatError, match=r"expected a (tar file|whole archive)"):
        import_entries(CacheStore(tmp_path / "cache"), tmp_path / "seed.tar", 1 << 20)


def test_an_object_that_many_entries_name_is_digested_once(
    released: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CacheStore(tmp_path / "cache")
    seed = released.file("archive/seed.tar")
    import_entries(store, seed, 1 << 30)
    (entry, *_) = sorted((released.root / "cache" / "v1" / "entries").iterdir())
    again = tar_of(*[(f"entries/{entry.name}", entry.read_bytes(), b"0")] * 50)
    (tmp_path / "again.tar").write_bytes(again)
    digested: list[str] = []
    real = transfer.object_problem  # type: ignore[attr-defined] # patched where it is used
    monkeypatch.setattr(
        transfer, "object_problem", lambda s, one: digested.append(one.name) or real(s, one)
    )
    assert len(import_entries(store, tmp_path / "again.tar", 1 << 30)) == 50
    assert len(digested) == len(set(digested)) == 2


# Containers and adapters


def test_a_payload_that_is_missing_is_told_in_few_words() -> None:
    entries = {f"{'n' * 10_000}{i}": Entry(str(i), 0, 0) for i in range(500)}
    container = Container(memoryview(b""), "tests", entries)
    with pytest.raises(FormatError, match=r"no payload called 'mmmm.*, \.\.\.$") as found:
        container.payload("m" * 10_000)
    assert len(str(found.value)) < 2000


def test_parameters_that_share_bytes_are_refused(tmp_path: Path) -> None:
    """A thousand parameters of one megabyte in a file of one would be a gigabyte."""
    made = ort_lite.AdapterFormat()
    value = ort_lite.OrtValue.ortvalue_from_numpy
    made.set_parameters({n: value(np.full((1, 64), 7, np.float32)) for n in "abcd"})
    made.export_adapter(tmp_path / "a")
    data = bytearray((tmp_path / "a").read_bytes())
    assert len(read_adapter(memoryview(data)).parameters) == 4
    places = [
        i for i in range(0, len(data) - 4, 4) if data[i : i + 4] == (256).to_bytes(4, "little")
    ]
    assert len(places) == 4
    for place in places[1:]:  # the vectors of the others become the first one's
        field = next(
            at for at in range(0, place, 4)
            if at + int.from_bytes(data[at : at + 4], "little") == place
        )  # fmt: skip
        data[field : field + 4] = (places[0] - field & 0xFFFFFFFF).to_bytes(4, "little")
    with pytest.raises(FormatError, match=r"raw_data|byte \d+ of"):
        read_adapter(memoryview(data))


# Texts


ODD_YAML = {
    "a character that is none": 'a: "\\U00110000"',
    "a directive of many digits": "%YAML 1." + "1" * 5000 + "\n---\na: b",
    "a large file": "# " + "x" * MAX_BYTES,
}


@pytest.mark.parametrize("text", ODD_YAML.values(), ids=ODD_YAML)
def test_odd_yaml_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hw_matrix.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MatrixError, match=r"hw_matrix.yaml: (not YAML|over \d+ bytes)"):
        read_matrix(path)


@pytest.mark.parametrize("content", [b'{"row": "\xff"}', b"[" * 100_000], ids=["bytes", "depth"])
def test_odd_results_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / RESULT_FILE).write_bytes(content)
    with pytest.raises(MatrixError, match="not a result of ort-lite hw run"):
        read_results([tmp_path])


def npz(path: Path, content: bytes, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("x.npy", content)
    return path


def npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


ODD_ARRAYS = {
    "a header without an end": (npy(b"{'descr': '<f4', 'shape': (\n"), zipfile.ZIP_STORED),
    "a shape of a petabyte": (
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1125899906842624,), }\n"),
        zipfile.ZIP_STORED,
    ),
    "a method that swells": (bytes(1 << 20), zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize(("content", "method"), ODD_ARRAYS.values(), ids=ODD_ARRAYS)
def test_odd_arrays_are_refused(content: bytes, method: int, tmp_path: Path) -> None:
    path = npz(tmp_path / "x.npz", content, method)
    with pytest.raises(CommandError, match=r"is not a \.npz file with plain arrays"):
        load_arrays(path)


# Plain models


HEAD_TEXT = '<ir_version: 8, opset_import: ["" : 18, "l" : 1]>\n'


def parse_text(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD_TEXT + text)


def test_a_version_that_onnx_cannot_hold_is_refused() -> None:
    model = parse_text("g (float[2] x) => (float[2] y) { y, a = Dropout(x) }")
    model.opset_import[0].version = -1 << 40
    with pytest.raises(InvalidGraph, match=r"version -1099511627776 of operator set 'ai\.onnx'"):
        ort_lite.InferenceSession(model.SerializeToString(), providers=CPU)


@pytest.mark.parametrize("op", ["Add", "Div", "MatMul", "Mul", "Pow", "Sub"])
@pytest.mark.parametrize("count", [1, 3])
def test_nodes_with_other_numbers_of_inputs_are_refused(op: str, count: int) -> None:
    names = ", ".join(["x", "x", "x"][:count])
    model = parse_text(f"g (float[2,2] x) => (float[2,2] y) {{ z = {op}({names}) y = Add(z, x) }}")
    says = rf"Node with schema\(::{op}:\d+\) has input size {count} not in range \[min=2, max=2\]"
    with pytest.raises(InvalidGraph, match=says):
        ort_lite.InferenceSession(model.SerializeToString(), providers=CPU)
    with pytest.raises(Exception, match=says):
        onnxruntime.InferenceSession(model.SerializeToString(), providers=CPU)


def test_a_function_that_is_no_message_is_refused() -> None:
    model = parse_text("""g (float[2] x) => (float[2] y) { y = l.f(x) }
        <opset_import: ["" : 18], domain: "l"> f (a) => (b) { b = Relu(a) }""")
    data = model.SerializeToString()
    at = data.index(b"Relu")
    broken = data[: at - 2] + b"\x22\x7f" + data[at:]  # a text that goes on behind the function
    with pytest.raises((InvalidProtobuf, InvalidGraph)):
        ort_lite.InferenceSession(broken, providers=CPU)


def test_constants_of_a_partition_grow_so_far_only() -> None:
    nodes = [helper.make_node("Shape", ["w"], ["c0"])]
    nodes += [helper.make_node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(26)]
    nodes.append(helper.make_node("Gather", ["c26", "x"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "doubled",
        [helper.make_tensor_value_info("x", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        [helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [0.0] * 4)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    loaded = loader.load(model.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    (plan,) = FACTORY.create({}).compile([FusedNode(name="doubled", graph=whole)])
    kept = [v for v in plan._template if isinstance(v, np.ndarray)]  # type: ignore[attr-defined] # a Plan
    assert sum(array.nbytes for array in kept) <= FREE_FOLDS + (1 << 12)
    (found,) = plan.run([np.int64([1])])
    assert found.tolist() == [2]
