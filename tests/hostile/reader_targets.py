"""Readers of bytes that need no session: what they may do is refuse with their error, or read."""

from __future__ import annotations

import copy
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from blake3 import blake3
from golden.released import RELEASES, Released, unpack
from hostile.byte_mutations import INTERESTING, mutated
from hostile.fuzz_target import Finding, Outcome, Target
from hostile.tar_mutations import damaged_tar
from hostile.text_mutations import damaged_json, damaged_yaml
from package_files import write_plain

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import replace
from ctx_formats.model_reader import read_model
from ctx_formats.notes import _load_json, _seal, read_notes
from ctx_formats.package_manifest import encode_manifest
from ctx_formats.package_reader import read_package
from eps.opencl.payload.format import ALIGNMENT, HEAD, MAGIC, VERSION, read_payload
from eps.opencl.tuning.cache import TuningCache
from ort_lite.cli.arrays import load_arrays
from ort_lite.cli.exit_codes import CommandError
from ort_lite.hw.cross_result import CROSS_FILE, read_cross
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.report import REPORT_FILE, read_report
from ort_lite.hw.result import RESULT_FILE, read_results
from ort_lite.model_cache.entry import _check, read_entry
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import import_entries
from ort_lite.model_cache.verification import problems
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random


class ReaderTarget(Target):
    """Files of the last release; `read` gets each damaged one and raises `refusals` or reads."""

    refusals: ClassVar[type[Exception]]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bases = self.files(unpack(RELEASES[-1], folder / "released"))

    def files(self, released: Released) -> Sequence[bytes]:
        """Valid ones."""
        raise NotImplementedError

    def damaged(self, data: bytes, random: Random) -> bytes:
        """One of them with a change."""
        return mutated(data, [(0, len(data))], random)

    def read(self, data: bytes) -> None:
        """Read it, and check what must be true of everything that is read."""
        raise NotImplementedError

    def run(self, random: Random) -> Outcome:
        base = random.choice(self.bases)
        self.last = self.damaged(base, random)
        if self.last == base:
            return Outcome("unchanged")
        try:
            self.read(self.last)
        except self.refusals as exc:
            text = str(exc)
            if len(text) > LONGEST_MESSAGE + len(str(self.folder)):
                raise Finding(f"a message of {len(text)} characters") from exc
            return Outcome("refused")
        return Outcome("right", "read")


LONGEST_MESSAGE = 1 << 20
"""Of messages with a name from the file; more than one copy of it helps nobody."""


class AdapterTarget(ReaderTarget):
    """LoRA adapters: bytes, offsets of tables and vectors, lengths."""

    name = "adapter"
    refusals = BindingError

    def files(self, released: Released) -> Sequence[bytes]:
        many = ort.AdapterFormat()
        many.set_parameters(
            {f"p{i}": ort.OrtValue.ortvalue_from_numpy(np.full((4, i + 1), i, np.float32))
             for i in range(40)}
        )  # fmt: skip
        many.export_adapter(self.folder / "many")
        return [released.file("adapter/*").read_bytes(), (self.folder / "many").read_bytes()]

    def damaged(self, data: bytes, random: Random) -> bytes:
        if random.random() < 0.5:
            return super().damaged(data, random)
        changed = bytearray(data)
        words = len(data) // 4
        for _ in range(random.choice((1, 2, 20))):
            at = 4 * random.randrange(words)
            # One offset in place of another, a step away, or a place of its own.
            other = int.from_bytes(data[(o := 4 * random.randrange(words)) : o + 4], "little")
            value = random.choice((other, other + 4, max(len(data) - at, 0), *INTERESTING))
            changed[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
        return bytes(changed)

    def read(self, data: bytes) -> None:
        path = self.folder / "adapter"
        path.write_bytes(data)
        found = ort.AdapterFormat.read_adapter(path).get_parameters().values()
        if sum(value.numpy().nbytes for value in found) > len(data):
            raise Finding("parameters are larger than their file")


class ArchiveTarget(ReaderTarget):
    """Archives of the model cache: headers of members, members, and what is in them."""

    name = "archive"
    refusals = FormatError

    def files(self, released: Released) -> Sequence[bytes]:
        return [released.file("archive/seed.tar").read_bytes()]

    def damaged(self, data: bytes, random: Random) -> bytes:
        return damaged_tar(data, random)

    def read(self, data: bytes) -> None:
        path, cache = self.folder / "seed.tar", self.folder / "cache"
        path.write_bytes(data)
        store = CacheStore(cache)
        try:
            import_entries(store, path, 1 << 24)
        finally:
            left = list(problems(store))
            shutil.rmtree(cache, ignore_errors=True)
        if left:
            raise Finding(f"an entry was taken that is damaged: {left}")


class MatrixTarget(ReaderTarget):
    """Hardware matrices: lines, values, nesting, anchors and tags of YAML."""

    name = "matrix"
    refusals = MatrixError

    def files(self, released: Released) -> Sequence[bytes]:
        root = Path(__file__).parents[2]
        return [
            released.file("hw/hw_matrix.yaml").read_bytes(),
            (root / "tests/hw_broken/hw_matrix.yaml").read_bytes(),
        ]

    def damaged(self, data: bytes, random: Random) -> bytes:
        return damaged_yaml(data, random)

    def read(self, data: bytes) -> None:
        path = self.folder / "hw_matrix.yaml"
        path.write_bytes(data)
        read_matrix(path)


class JsonTarget(ReaderTarget):
    """JSON that `_changed` in text_mutations makes worse."""

    def damaged(self, data: bytes, random: Random) -> bytes:
        return damaged_json(data, random)


class EvidenceTarget(JsonTarget):
    """Results and reports of the hardware matrix."""

    name = "evidence"
    refusals = MatrixError
    _readers: ClassVar[dict[str, Callable[[Path], object]]] = {
        RESULT_FILE: lambda folder: read_results([folder]),
        CROSS_FILE: lambda folder: read_cross([folder]),
        REPORT_FILE: read_report,
    }

    def files(self, released: Released) -> Sequence[bytes]:
        return [(released.root / "hw" / name).read_bytes() for name in self._readers]

    def read(self, data: bytes) -> None:
        """As whichever it says to be; what it was is not known here."""
        for name in self._readers:
            folder = self.folder / name.partition(".")[0]
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        refused = []
        for name, read in self._readers.items():
            try:
                read(self.folder / name.partition(".")[0])
            except MatrixError as exc:
                refused.append(exc)
        if len(refused) == len(self._readers):
            raise refused[0]


class TuningTarget(JsonTarget):
    """Measured tilings of a device: never in the way."""

    name = "tuning"
    refusals = FormatError

    def files(self, released: Released) -> Sequence[bytes]:
        data = released.file("tuning/*.json").read_bytes()
        self.identity = HardwareIdentity.from_mapping(json.loads(data)["identity"])
        return [data]

    def read(self, data: bytes) -> None:
        cache = TuningCache(self.folder, self.identity)
        cache.path.write_bytes(data)
        found = cache.read()
        if not all(tiling.tile.fits(problem) for problem, tiling in found.items()):
            raise Finding("a tile is larger than its problem")
        cache._parse(data)  # what `read` warns of


class EntryTarget(JsonTarget):
    """Entries of the model cache whose digests are right."""

    name = "entry"
    refusals = FormatError

    def files(self, released: Released) -> Sequence[bytes]:
        paths = sorted((released.root / "cache" / "v1" / "entries").iterdir())
        return [path.read_bytes() for path in paths]

    def read(self, data: bytes) -> None:
        try:
            content = json.loads(data)
            content.pop("check", None)
            content["check"] = _check(content)
            again = json.dumps(content).encode()
        except (ValueError, TypeError, AttributeError, RecursionError):
            again, content = data, {}
        read_entry(again, str(content.get("key")))


class NotesTarget(JsonTarget):
    """Notes of EPContext nodes whose seals are right."""

    name = "notes"
    refusals = FormatError

    def files(self, released: Released) -> Sequence[bytes]:
        data = released.file("contexts/openvino/external.onnx").read_bytes()
        (node,) = read_model(memoryview(data)).graph.nodes
        self.node = EpContextNode.from_node(node)
        return [self.node.notes.encode()]

    def read(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        try:
            content, spelled = _load_json(text, "notes")
            content["seal"] = _seal(self.node, spelled)
            text = json.dumps(content, ensure_ascii=False)
        except (FormatError, UnicodeEncodeError):
            pass
        read_notes(replace(self.node, notes=text))


class PackageTarget(JsonTarget):
    """Manifests of model packages: fields, paths, versions, and references to shared folders."""

    name = "package"
    refusals = FormatError

    def files(self, released: Released) -> Sequence[bytes]:
        root = write_plain(self.folder / "pkg")
        (root / "shared_assets" / f"sha256-{'0' * 64}").mkdir(parents=True)
        plain = json.loads((root / "manifest.json").read_bytes())
        body = plain["components"]["model"]["variants"]["cpu"]
        more = copy.deepcopy(body) | {"variant_directory": "cpu", "device": "npu"}
        more["executor_info"]["ort"] |= {
            "model_file": f"sha256:{'0' * 64}/model.onnx",
            "session_options": {"ep.context_file_path": "ctx/model.onnx"},
        }
        plain["components"]["model"]["variants"]["more"] = more
        plain["shared_assets"] = {f"sha256:{'0' * 64}": f"shared_assets/sha256-{'0' * 64}"}
        return [(root / "manifest.json").read_bytes(), json.dumps(plain).encode()]

    def read(self, data: bytes) -> None:
        root = self.folder / "pkg"
        (root / "manifest.json").write_bytes(data)
        package = read_package(root)
        for component in package.manifest.components:
            for variant in component.variants:
                for path in filter(None, (variant.folder, variant.model_path)):
                    inside = Path(path).is_relative_to(package.root)
                    if package.manifest.layout == "portable" and not inside:
                        raise Finding(f"a path leads out of the package: {path}")
        encode_manifest(package.manifest)


class OpenClTarget(JsonTarget):
    """Compiled OpenCL programs whose headers are digested right, and any byte of them."""

    name = "opencl"
    refusals = FormatError

    def files(self, released: Released) -> Sequence[bytes]:
        found = []
        for path in sorted(released.root.glob("contexts/*/*_OpenCLExecutionProvider.bin")):
            container = read_container(memoryview(path.read_bytes()))
            if not container.weights:
                found += [bytes(container.payload(name)) for name in container.entries]
        return found

    def damaged(self, data: bytes, random: Random) -> bytes:
        if random.random() < 0.25:
            return mutated(data, [(0, len(data)), (0, 2000)], random)
        _, _, size, _, _ = HEAD.unpack_from(data)
        body = data[-(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT :]
        raw = damaged_json(data[HEAD.size : HEAD.size + size], random)
        base = -(-(HEAD.size + len(raw)) // ALIGNMENT) * ALIGNMENT
        head = HEAD.pack(MAGIC, VERSION, len(raw), base + len(body), blake3(raw).digest())
        return head + raw + bytes(base - HEAD.size - len(raw)) + body

    def read(self, data: bytes) -> None:
        found = read_payload(memoryview(data), 128)
        if sum(len(v.spec.source) for v in found.variants) > 100 * len(data) + (1 << 27):
            raise Finding("sources are larger than a payload may have")


class ArraysTarget(ReaderTarget):
    """Archives of arrays that `ort-lite run -i` reads."""

    name = "arrays"
    refusals = CommandError

    def files(self, released: Released) -> Sequence[bytes]:
        made = []
        for save in (np.savez, np.savez_compressed):
            out = io.BytesIO()
            save(out, x=np.arange(300, dtype=np.float32), y=np.zeros((3, 4), np.int64))
            made.append(out.getvalue())
        return made

    def damaged(self, data: bytes, random: Random) -> bytes:
        if random.random() < 0.6:
            return super().damaged(data, random)
        out = io.BytesIO()
        method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, content in _members(data):
                shape = random.choice((b"(1099511627776,)", b"(3, 4)", b"(-1,)", b"9" * 300, b"()"))
                changed = content.replace(b"(300,)", shape.ljust(6))
                archive.writestr(name, random.choice((content, changed, b"", content[:40])))
        return out.getvalue()

    def read(self, data: bytes) -> None:
        path = self.folder / "arrays.npz"
        path.write_bytes(data)
        load_arrays(path)


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


READERS: tuple[type[ReaderTarget], ...] = (
    *(AdapterTarget, ArchiveTarget, ArraysTarget, EntryTarget, EvidenceTarget, MatrixTarget),
    *(NotesTarget, OpenClTarget, PackageTarget, TuningTarget),
)
