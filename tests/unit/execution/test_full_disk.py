"""A disk that is full or read-only for real: typed errors, nothing half written.

A tmpfs of 4 MiB is mounted where nobody else sees it, filled up to so many bytes, and in the end
mounted read-only. With room, everything works again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, shutil, subprocess, sys
from errno import ENOSPC
from pathlib import Path
import ort_lite as ort
from eps.opencl.compile.tilings import Problem, Tile, Tiling
from eps.opencl.tuning.cache import TuningCache
from ctx_formats.identity import HardwareIdentity
from ort_lite.context.signing import sign_file
from ort_lite.hw.cross_result import CrossCell, CrossResult, write_cross
from ort_lite.hw.result import CaseResult, RowResult, write_result
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import export_entries, import_entries
from ort_lite.trust.private_keys import read_signer
from signed_models import make_key
from small_models import feed, tied

name, full = sys.argv[1], Path("full")
ep = name + "ExecutionProvider"
Path("m.onnx").write_bytes(tied(width=256).SerializeToString())
make_key(Path(), "k")

def options(entries):
    made = ort.SessionOptions()
    for key, value in entries.items():
        made.add_session_config_entry(key, value)
    return made

def compiled(target, **entries):
    made = options({"ep.context_" + key: value for key, value in entries.items()})
    made.add_provider(ep)
    ort.ModelCompiler(made, "m.onnx").compile_to_file(str(target))

def run_with_cache(folder):
    made = options({"session.ep_context_cache": "1", "session.ep_context_cache_dir": str(folder)})
    with ort.InferenceSession("m.onnx", made, providers=[ep], enable_fallback=0) as session:
        session.run(None, feed(tied(width=256)))

def export(target):
    store = CacheStore(Path("cache"))
    if not target.exists():
        export_entries(store, store.sound_entries(), target)

def tune():
    problem = Problem(
        batch=1, rows=1, columns=8, taps=(1, 1), depth=64, width=64, packed=True, operands=0
    )
    tiling = Tiling(Tile(high=1, wide=4, panels=2, vector=8), tasks=2)
    TuningCache(full / "tuning", HardwareIdentity(device="CPU")).add({problem: tiling})

def write_hw_result():
    case = CaseResult(suite="all", name="dense", outcome="passed", seconds=0.5)
    result = RowResult(
        row="plain", status="passed", started="2026-11-22T10:00:00+00:00",
        ep="CPUExecutionProvider", identity={"device": "CPU"}, suites=("all",), cases=(case,) * 60,
    )
    write_result(result, full / "hw")

def write_hw_table():
    cell = CrossCell(builder="a", loader="b", model="dense", verdict="optimal", as_expected=True)
    write_cross(CrossResult(started="2026", rows=(), cells=(cell,) * 60), full / "hw")

def files():
    return {
        str(path.relative_to(full)): path.read_bytes()
        for path in full.rglob("*")
        if path.is_file() and path.name != "filler"
    }

def fill(free):
    with (full / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as exc:
            assert exc.errno == ENOSPC
    os.truncate(full / "filler", max((full / "filler").stat().st_size - free, 0))

run_with_cache("cache")
compiled("c.onnx")
export(Path("seed.tar"))
WRITERS = {
    "external": lambda: compiled(full / "x.onnx"),
    "embedded": lambda: compiled(full / "x.onnx", embed_mode="1"),
    "signed": lambda: compiled(full / "x.onnx", sign_key="k.key"),
    "sign": lambda: sign_file(
        Path("c.onnx"), full / "s.onnx", read_signer(Path("k.key"), None), ort.SessionOptions()
    ),
    "cache": lambda: run_with_cache(full / "cache"),
    "archive": lambda: export(full / "seed.tar"),
    "import": lambda: import_entries(CacheStore(full / "cache"), Path("seed.tar"), 1 << 30),
    "tuning": tune,
    "hw result": write_hw_result,
    "hw table": write_hw_table,
}
WORKS_WITHOUT = {"cache", "tuning"}  # what they keep saves time alone
for free in (0, 4096, 65536):
    for writer, write in WRITERS.items():
        (full / "hw").mkdir()
        fill(free)
        try:
            write()
            outcome = "works"
        except ort.OrtLiteError as exc:
            assert "No space left" in str(exc), exc
            outcome = "refused"
        left = files()
        if outcome == "refused":
            assert left == {}, (writer, list(left))
        assert free or outcome == "refused" or writer in WORKS_WITHOUT, writer
        assert not [path for path in left if path.endswith(".tmp")], (writer, list(left))
        (full / "filler").unlink()
        if writer == "cache":
            assert not list(CacheStore(full / "cache").entries())
        write()
        whole = files()
        assert whole, writer
        if outcome == "refused":
            fill(0)
            try:
                write()  # over what is there
            except ort.OrtLiteError:
                assert files() == whole, writer
            (full / "filler").unlink()
        for path in full.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        print("case", free, writer, outcome, sep="|", flush=True)
(full / "hw").mkdir()
subprocess.run(["mount", "-o", "remount,ro", "full"], check=True)
for writer, write in WRITERS.items():
    try:
        write()
        outcome = "works"
    except ort.OrtLiteError as exc:
        known = ("Read-only file system", "no permission to write")
        assert any(words in str(exc) for words in known), exc
        outcome = "refused"
    assert (outcome == "works") == (writer in WORKS_WITHOUT), writer
    assert files() == {}, writer
    print("case", "read-only", writer, outcome, sep="|", flush=True)
"""
MOUNT = "mkdir full && mount -t tmpfs -o size=4m tmpfs full"


def _is_allowed(folder: Path) -> bool:
    if sys.platform != "linux" or not shutil.which("unshare"):
        return False
    command = ["unshare", "-rm", "sh", "-c", MOUNT]
    return not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_a_full_or_read_only_disk_is_a_typed_error_and_leaves_nothing_half_written(
    ep: str, tmp_path: Path
) -> None:
    (tmp_path / "try").mkdir()
    if not _is_allowed(tmp_path / "try"):
        pytest.skip("this process may not mount a file system of its own (unshare -rm)")
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    own_mounts = ["unshare", "-rm", "sh", "-c", f'{MOUNT} && exec "$@"']
    done = subprocess.run(
        [*own_mounts, "sh", sys.executable, "-W", "ignore", "-c", PROGRAM, ep],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cases = [line.split("|")[1:] for line in done.stdout.splitlines() if line.startswith("case|")]
    assert len(cases) == 40
    for disk in ("0", "read-only"):
        refused = {
            writer for kind, writer, outcome in cases if (kind, outcome) == (disk, "refused")
        }
        results = {"hw result", "hw table"}
        writers = {"external", "embedded", "signed", "sign", "archive", "import", *results}
        assert refused == writers, disk
