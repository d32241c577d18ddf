"""Makes one of each file that this ort_lite writes: the golden files of a release.

    python tests/golden/make_release.py

writes `tests/golden/<version>/`: `files.tar.xz` with the files, and `about.json` with the digest
of each, how each was made, and for a model the input and what onnxruntime answers to it. It needs
onnxruntime, OpenVINO and both OpenCL platforms of the test environment; without one of them it
stops. A folder that is there is not made again: it shows what was once written.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from opencl_devices import all_devices  # noqa: E402 - the paths come first
from small_models import feed, mlp, tied  # noqa: E402 - as above

import ort_lite as ort  # noqa: E402 - as above
from ctx_formats.atomic_write import write_file  # noqa: E402 - as above
from eps.opencl.compile.tilings import Problem, Tile, Tiling  # noqa: E402 - as above
from eps.opencl.runtime.identity import read_identity  # noqa: E402 - as above
from eps.opencl.trials import record as trial_record  # noqa: E402 - as above
from eps.opencl.tuning.cache import TuningCache  # noqa: E402 - as above
from ort_lite.hw.cross_result import CrossCell, CrossResult, CrossRow, write_cross  # noqa: E402 - as above
from ort_lite.hw.read_matrix import read_matrix  # noqa: E402 - as above
from ort_lite.hw.report import REPORT_FILE, make_report  # noqa: E402 - as above
from ort_lite.hw.result import CaseResult, RowResult, write_result  # noqa: E402 - as above
from ort_lite.model_cache.store import CacheStore  # noqa: E402 - as above
from ort_lite.model_cache.transfer import export_entries  # noqa: E402 - as above
from ort_lite.testing.context_file import remove_digests  # noqa: E402 - as above
from ort_lite.version import VERSION  # noqa: E402 - as above

PROVIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "openvino": ("OpenVINOExecutionProvider", {}),
    "intel_opencl": ("OpenCLExecutionProvider", {"platform": "intel"}),
    "pocl": ("OpenCLExecutionProvider", {"platform": "portable"}),
}
MATRIX = """\
schema: 1
project: golden
providers:
  cpu: { ep: CPUExecutionProvider, device: CPU }
machines:
  any: { require: { os: linux } }
rows:
  - { id: plain, provider: cpu, machine: any, suites: [all] }
models:
  dense: { path: dense.onnx }
suites:
  all: { kind: models, models: [dense] }
states:
  plain: { state: expected }
"""
IDENTITY = {"device": "CPU: golden", "sdk_version": "1.0"}


class Release:
    """The files so far, in a folder of their own.

    Attributes:
        contexts: Of each context model what a reader needs to judge its answer.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contexts: list[dict[str, Any]] = []
        self._models = {
            "mlp": mlp(),
            "free": mlp("rows"),
            "tied_a": tied(1.0, 64),
            "tied_b": tied(-1.0, 64),
        }
        (root / "models").mkdir()
        for name, proto in self._models.items():
            self.model(name).write_bytes(proto.SerializeToString())

    def model(self, name: str) -> Path:
        """A plain model."""
        return self.root / "models" / f"{name}.onnx"

    def compile_contexts(self) -> None:
        """Contexts of every kind on every execution provider that keeps any."""
        for slug, (ep, options) in PROVIDERS.items():
            folder = self.root / "contexts" / slug
            folder.mkdir(parents=True)
            for kind, model, entries in (
                ("external", "mlp", {}),
                ("embedded", "mlp", {"ep.context_embed_mode": "1"}),
                ("free", "free", {}),
            ):
                target = folder / f"{kind}.onnx"
                self._compile(slug, model, target, entries)
                self._note(target, ep, options, model)
            self._share(slug, folder)
        self._without_notes()

    def _compile(
        self,
        slug: str,
        model: str,
        target: Path,
        entries: dict[str, str],
        group: ort.SharedContexts | None = None,
    ) -> None:
        ep, options = PROVIDERS[slug]
        config = ort.SessionOptions()
        config.add_session_config_entry("ep.context_enable", "1")
        config.add_session_config_entry("ep.context_file_path", str(target))
        for key, value in entries.items():
            config.add_session_config_entry(key, value)
        if group is not None:
            group.join(config)
        data = self.model(model).read_bytes()
        with ort.InferenceSession(data, config, providers=[(ep, options)]) as session:
            placed = {part.ep for part in session.explain().partitions}
            session.run(None, feed(self._models[model]) if model != "free" else self._rows(5))
        if placed != {ep}:
            raise SystemExit(f"{slug}: {model} runs on {placed}")

    def _share(self, slug: str, folder: Path) -> None:
        with ort.SharedContexts() as group:
            for model in ("tied_a", "tied_b"):
                self._compile(slug, model, folder / f"shared_{model}.onnx", {}, group)
        ep, options = PROVIDERS[slug]
        for model in ("tied_a", "tied_b"):
            self._note(folder / f"shared_{model}.onnx", ep, options, model)

    def _without_notes(self) -> None:
        """As other software writes it: no notes, no digests."""
        folder = self.root / "contexts" / "openvino"
        proto = onnx.load(folder / "external.onnx")
        (node,) = [n for n in proto.graph.node if n.op_type == "EPContext"]
        kept = [a for a in node.attribute if a.name != "notes"]
        (payload,) = [a for a in kept if a.name == "ep_cache_context"]
        container = remove_digests((folder / payload.s.decode()).read_bytes())
        payload.s = b"without_notes.bin"
        del node.attribute[:]
        node.attribute.extend(kept)
        (folder / "without_notes.bin").write_bytes(container)
        (folder / "without_notes.onnx").write_bytes(proto.SerializeToString())
        self._note(folder / "without_notes.onnx", *PROVIDERS["openvino"], "mlp")

    @staticmethod
    def _rows(rows: int) -> dict[str, Any]:
        return {"x": np.random.default_rng(3).standard_normal((rows, 4)).astype(np.float32)}

    def _note(self, path: Path, ep: str, options: dict[str, str], model: str) -> None:
        inputs = self._rows(5) if model == "free" else feed(self._models[model])
        peer = onnxruntime.InferenceSession(str(self.model(model)))
        (answer,) = peer.run(None, inputs)
        self.contexts.append(
            {
                "path": str(path.relative_to(self.root)),
                "provider": ep,
                "options": options,
                "model": f"models/{model}.onnx",
                "inputs": {name: value.tolist() for name, value in inputs.items()},
                "output": answer.tolist(),
            }
        )

    def keep_in_cache(self) -> None:
        """Entries of the model cache, and an archive of them."""
        folder = self.root / "cache"
        for slug, (ep, options) in PROVIDERS.items():
            config = ort.SessionOptions()
            config.add_session_config_entry("session.ep_context_cache", "1")
            config.add_session_config_entry("session.ep_context_cache_dir", str(folder))
            data = self.model("mlp").read_bytes()
            with ort.InferenceSession(data, config, providers=[(ep, options)]) as session:
                cache = session.load_report().cache
                if cache is None or cache.state == "hit":
                    raise SystemExit(f"{slug}: not compiled into the cache")
        shutil.rmtree(CacheStore(folder).locks)
        store = CacheStore(folder)
        entries = store.sound_entries()
        if len(entries) != len(PROVIDERS):
            raise SystemExit(f"{len(entries)} entries for {list(PROVIDERS)}")
        store.pin(entries[0].key)
        (self.root / "archive").mkdir()
        export_entries(store, entries, self.root / "archive" / "seed.tar")

    def keep_records(self) -> None:
        """Tuning, trials, verdicts of payloads."""
        found = all_devices()[0]
        problem = Problem(
            batch=1, rows=1, columns=8, taps=(1, 1), depth=64, width=64, packed=True, operands=0
        )
        tuned = {problem: Tiling(Tile(high=1, wide=4, panels=2, vector=8), tasks=2)}
        TuningCache(self.root / "tuning", read_identity(found)).add(tuned)
        facts = trial_record.facts_of(found, {})
        trial_record.write_problem(facts, str(self.root / "trials"), "")
        trial_record.write_problem({**facts, "cpu": "old"}, str(self.root / "trials"), "refused")
        (self.root / "probes").mkdir()
        verdict = json.dumps({"ort_lite_probe": 1, "problem": "was ended by signal 11"})
        write_file(self.root / "probes" / f"{'ab' * 32}.json", verdict.encode(), replace=False)

    def keep_adapter(self) -> None:
        """A LoRA adapter."""
        (self.root / "adapter").mkdir()
        weights = np.arange(6, dtype=np.float32).reshape(2, 3)
        adapter = ort.AdapterFormat()
        adapter.set_adapter_version(4)
        adapter.set_model_version(5)
        adapter.set_parameters({"lora": ort.OrtValue.ortvalue_from_numpy(weights)})
        adapter.export_adapter(str(self.root / "adapter" / "lora.onnx_adapter"))

    def keep_hw(self) -> None:
        """A matrix, results, a table of contexts and a report."""
        folder = self.root / "hw"
        folder.mkdir()
        (folder / "hw_matrix.yaml").write_text(MATRIX, encoding="utf-8")
        started = "2026-11-22T10:00:00+00:00"
        case = CaseResult(
            suite="all", name="dense", outcome="passed", seconds=0.5, metrics={"run": 1.5}
        )
        result = RowResult(
            row="plain", status="passed", started=started, ep="CPUExecutionProvider",
            identity=IDENTITY, suites=("all",), cases=(case,),
        )  # fmt: skip
        write_result(result, folder)
        cell = CrossCell(builder="plain", loader="plain", model="dense", verdict="optimal")
        row = CrossRow(row="plain", status="ready", identity=IDENTITY)
        write_cross(CrossResult(started=started, rows=(row,), cells=(cell,)), folder)
        import msgspec  # noqa: PLC0415 - as ort_lite.cli.hw_report, which writes the file

        made = make_report(read_matrix(folder / "hw_matrix.yaml"), [folder], None)
        text = msgspec.json.format(msgspec.json.encode(made), indent=1)
        (folder / REPORT_FILE).write_bytes(text)

    def keep_session_files(self) -> None:
        """A profile, and a model after transformations."""
        config = ort.SessionOptions()
        config.enable_profiling = True
        config.profile_file_prefix = str(self.root / "profile")
        config.optimized_model_filepath = str(self.root / "models" / "mlp_optimized.onnx")
        path = str(self.model("mlp"))
        with ort.InferenceSession(path, config, providers=["CPUExecutionProvider"]) as session:
            session.run(None, feed(self._models["mlp"]))
            Path(session.end_profiling()).rename(self.root / "profile.json")


def main() -> None:
    """Make the folder of this version."""
    target = HERE / VERSION
    target.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["POCL_CACHE_DIR"] = f"{scratch}/pocl"  # PoCL writes its path into binaries
        root = Path(scratch) / "files"
        root.mkdir()
        release = Release(root)
        release.compile_contexts()
        release.keep_in_cache()
        release.keep_records()
        release.keep_adapter()
        release.keep_hw()
        release.keep_session_files()
        files = sorted(path for path in root.rglob("*") if path.is_file())
        about = {
            "ort_lite": VERSION,
            "made": dt.datetime.now(dt.UTC).date().isoformat(),
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "files": {
                str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in files
            },
            "contexts": release.contexts,
        }
        with tarfile.open(target / "files.tar.xz", "w:xz") as archive:
            for path in files:
                member = tarfile.TarInfo(str(path.relative_to(root)))
                member.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(member, file)
    text = json.dumps(about, indent=1)
    (target / "about.json").write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"{len(files)} files in {target}{os.sep}\n")


if __name__ == "__main__":
    main()
