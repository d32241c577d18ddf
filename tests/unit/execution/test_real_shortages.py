"""Threads, memory and disk that run out for real, in a process each: typed errors, no half files.

What is done under the limit either works or ends in a typed error, and the same works without it.
Vendors' libraries end the process for some of it (docs/robustness.md, "What runs out"): OpenCL's
runtimes are therefore loaded first, and compile nothing without memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from signed_models import make_key
from small_models import tied

import ort_lite as ort

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's"),
]
ROOT = Path(__file__).parents[3]
PROGRAM = """
import ctypes, os, resource, shutil, signal, sys
from pathlib import Path
import numpy as np
import ort_lite as ort
from small_models import feed, tied

ep, name, amount, start, *roads = sys.argv[1:]
# On one thread a first run would leave OpenVINO's others without their thread-local data. glibc
# allocates that later, and ends the process if it cannot.
threads = {"num_of_threads": str(os.cpu_count())} if ep == "OpenVINO" else {}
providers = [(ep + "ExecutionProvider", threads)]
inputs = feed(tied(width=256))
context = Path("out/new_ctx.onnx")

def options(**entries):
    made = ort.SessionOptions()
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made

def session(path, config=None):
    with ort.InferenceSession(path, config, providers=providers, enable_fallback=0) as made:
        return made.run(None, inputs)[0]

def compiled(**entries):
    config = options(**entries)
    config.add_provider(*providers[0])
    ort.ModelCompiler(config, "m.onnx").compile_to_file(str(context))

ROADS = {
    "plain": lambda: session("m.onnx"),
    "reload": lambda: session("c.onnx"),
    "export": lambda: session(
        "m.onnx", options(ep__context_enable="1", ep__context_file_path=str(context))
    ),
    "compile": compiled,
    "sign": lambda: compiled(ep__context_sign_key="k.key"),
    "cache": lambda: session(
        "m.onnx",
        options(session__ep_context_cache="1", session__ep_context_cache_dir="out/cache"),
    ),
}

def without_privileges():
    '''No limit of threads holds for user 0, nor with CAP_SYS_ADMIN or CAP_SYS_RESOURCE.'''
    os.setresuid(65534, 0, 0)
    libc, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 6)()
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert not libc.syscall(125, head, sets)  # capget
    for capability in (21, 24):
        for which in (0, 1):
            sets[which] &= ~(1 << capability)
    assert not libc.syscall(126, head, sets)  # capset

def limit():
    if name == "RLIMIT_AS":
        return int(Path("/proc/self/statm").read_text().split()[0]) * 4096 + int(amount)
    return int(amount)

if name == "RLIMIT_NPROC" and os.getuid() == 0:
    without_privileges()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with ort.InferenceSession("m.onnx", providers=["CPUExecutionProvider"]) as peer:
    right = peer.run(None, inputs)[0]
if start == "warm":
    session("c.onnx" if Path("c.onnx").exists() else "m.onnx")
kind = getattr(resource, name)
soft, hard = resource.getrlimit(kind)
for road in roads:
    resource.setrlimit(kind, (limit(), hard))
    try:
        found = ROADS[road]()
        outcome = "works"
    except ort.OrtLiteError as exc:
        found, outcome = None, f"refused: {exc}"
    finally:
        resource.setrlimit(kind, (soft, hard))
    assert found is None or np.allclose(found, right, atol=1e-3), road
    assert not list(Path("out").rglob("*.tmp")), road
    if outcome == "works":
        if context.exists():
            session(str(context))  # whole
    else:
        assert not list(Path("out").glob("new_ctx*")), road
    for path in Path("out").glob("new_ctx*"):
        path.unlink()
    found = ROADS[road]()
    assert found is None or np.allclose(found, right, atol=1e-3), road
    shutil.rmtree("out")
    Path("out").mkdir()
    Path("out").chmod(0o777)
    print(road, outcome)
"""
PARSING = """
import os, resource
from pathlib import Path
import ort_lite as ort
from ort_lite.shortages import shortage_as_status
from eps import opencl

module = Path(opencl.__file__).parent / "runtime/executable.py"
source = module.read_bytes()
parse = shortage_as_status("the module cannot be imported")(compile)
_, hard = resource.getrlimit(resource.RLIMIT_AS)

def parse_with(amount):
    # A function, and a short one: CPython 3.11 loops forever where it has no memory for the number
    # of the instruction, over 256, that an exception comes from.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + amount, hard))
    try:
        parse(source, str(module), "exec")
        return b"works "
    except ort.OrtLiteError:
        return b"refused "

for amount in range(500_000, 3_000_000, 10_000):  # half of it may not be enough to say so
    if child := os.fork():
        assert not os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), amount
        continue
    os.write(1, parse_with(amount))
    os._exit(0)
"""
COMPILING = ("plain", "export", "compile", "sign", "cache", "reload")
CASES = [
    ("CPU", "RLIMIT_NPROC", 1, "cold", ("plain",)),
    ("CPU", "RLIMIT_AS", 1 << 20, "cold", ("plain",)),
    ("CPU", "RLIMIT_AS", 1 << 16, "warm", ("plain",)),
    ("OpenVINO", "RLIMIT_NPROC", 1, "cold", COMPILING),
    ("OpenVINO", "RLIMIT_NPROC", 1, "warm", COMPILING),
    ("OpenVINO", "RLIMIT_AS", 1 << 20, "cold", COMPILING),
    ("OpenVINO", "RLIMIT_AS", 30 << 20, "cold", COMPILING),
    ("OpenVINO", "RLIMIT_AS", 1 << 16, "warm", COMPILING),
    ("OpenVINO", "RLIMIT_FSIZE", 4096, "warm", COMPILING),
    ("OpenCL", "RLIMIT_NPROC", 1, "warm", COMPILING),
    ("OpenCL", "RLIMIT_AS", 1 << 20, "cold", ("reload",)),
    ("OpenCL", "RLIMIT_AS", 1 << 16, "warm", COMPILING),
    ("OpenCL", "RLIMIT_FSIZE", 4096, "warm", COMPILING),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each EP with a model, its context and a key."""
    root = tmp_path_factory.mktemp("shortages")
    for ep in ("CPU", "OpenVINO", "OpenCL"):
        folder = root / ep
        (folder / "out").mkdir(parents=True)
        (folder / "m.onnx").write_bytes(tied(width=256).SerializeToString())
        make_key(folder, "k")
        if ep != "CPU":
            options = ort.SessionOptions()
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_file_path", str(folder / "c.onnx"))
            ort.InferenceSession(
                folder / "m.onnx", options, providers=[f"{ep}ExecutionProvider"]
            ).close()
    return root


def run(
    folder: Path, arguments: list[str], before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """The program, with a folder of its own that every user can write to."""
    folder.chmod(0o777)
    (folder / "out").chmod(0o777)
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    return subprocess.run(
        [*before, sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(
    ("ep", "name", "amount", "start", "roads"),
    CASES,
    ids=[f"{c[0]}-{c[1]}-{c[2]}-{c[3]}" for c in CASES],
)
def test_what_runs_out_is_a_typed_error_and_the_next_session_works(
    ep: str, name: str, amount: int, start: str, roads: tuple[str, ...], made: Path
) -> None:
    with tempfile.TemporaryDirectory() as free:  # pytest's folders are for one user
        Path(free).chmod(0o777)
        folder = shutil.copytree(made / ep, Path(free) / "it")
        done = run(folder, [ep, name, str(amount), start, *roads])
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(roads)


def test_memory_that_runs_out_while_python_parses_a_module_is_a_typed_error(
    tmp_path: Path,
) -> None:
    # From bytecode, which a checkout may lack: parsing leaves memory behind that is enough later.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(tmp_path)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    imports = [line for line in PARSING.splitlines() if "import" in line.split()]
    subprocess.run([sys.executable, "-c", "\n".join(imports)], env=env, check=True)
    done = subprocess.run(
        [sys.executable, "-c", PARSING],
        env={**env, "PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"refused", "works"}
