"""Imports for signatures: nothing where none is asked for, no SDK before one is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from context_models import OPENVINO, compile_context
from signed_models import TRUST
from small_models import feed, mlp
from system_limits import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signed_models import Key

ROOT = Path(__file__).parents[3]
START = """
import json, sys
import ort_lite as ort
options = ort.SessionOptions()
for key, value in {entries!r}.items():
    options.add_session_config_entry(key, value)
try:
    ort.InferenceSession({path!r}, options, providers={providers!r})
    reason = ""
except ort.InvalidGraph as exc:
    reason = str(exc.reason)
mapped = None
if sys.platform == "linux":
    with open("/proc/self/maps") as maps:
        mapped = "libopenvino" in maps.read()
print(json.dumps([reason, sorted(sys.modules), mapped]))
"""
MAPPED = True if sys.platform == "linux" else None
"""Other systems do not say what a process has loaded."""
TRUSTING = {"cryptography", "ort_lite.trust", "ctx_formats.signatures", "hashlib"}
if WINDOWS:
    TRUSTING.remove("hashlib")  # OpenVINO's package, which is imported whole there, needs it


def started(
    path: Path, providers: Sequence[str] | None = (OPENVINO,), **entries: str
) -> tuple[str, set[str], bool | None]:
    code = START.format(path=str(path), entries=entries, providers=providers)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    reason, modules, mapped = json.loads(done.stdout.splitlines()[-1])
    return reason, set(modules), mapped


@pytest.mark.parametrize("signed", [False, True])
def test_nothing_is_imported_for_signatures_that_nobody_asks_for(
    tmp_path: Path, key: Key, *, signed: bool
) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    if signed:
        key.sign(made.path)
    reason, modules, mapped = started(made.path)
    assert (reason, mapped) == ("", MAPPED)
    assert modules & TRUSTING == set()


def test_a_signature_is_verified_without_the_reader_of_key_files(tmp_path: Path, key: Key) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    key.sign(made.path)
    reason, modules, mapped = started(made.path, **{TRUST: str(key.public)})
    assert (reason, mapped) == ("", MAPPED)
    assert "cryptography.hazmat.primitives.serialization.ssh" not in modules


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps")
@pytest.mark.parametrize("providers", [(OPENVINO,), None], ids=["named", "all installed"])
def test_the_vendor_s_library_is_not_loaded_before_a_signature_is_right(
    tmp_path: Path, key: Key, providers: Sequence[str] | None
) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    reason, modules, mapped = started(made.path, providers, **{TRUST: str(key.public)})
    assert (reason, mapped) == ("untrusted", False)
    assert "openvino" not in modules


def test_without_the_library_the_error_names_what_to_install(tmp_path: Path, key: Key) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    key.sign(made.path)
    code = (
        "import sys\nsys.modules['cryptography'] = None\n"
        f"sys.argv = ['ort-lite', 'verify', {str(made.path)!r}, '--trust', {str(key.public)!r}]\n"
        "from ort_lite.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 5
    assert 'pip install "ort-lite[sign]"' in done.stderr
