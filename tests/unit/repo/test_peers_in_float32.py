"""Peers whose numbers or times are compared are asked for float32.

OpenVINO computes in bfloat16 by default on CPUs that have it, so that a comparison which holds on
one machine would fail, or flatter a peer, on the next.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.harness.conditions import PEERS, conditions
from ort_lite.hw.facts import read_facts

ROOT = Path(__file__).parents[3]
WITH_CONFIG = ("compile_model", "import_model")
"""Methods of openvino.Core whose third argument is the configuration."""


def unasked(source: str) -> list[str]:
    """Calls that open a model on OpenVINO's CPU, or the plug-in's, and ask for nothing."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if _asks_nothing(call)]


def _asks_nothing(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    arguments = [ast.unparse(argument) for argument in call.args]
    if call.func.attr in WITH_CONFIG:
        return arguments[1:2] == ["'CPU'"] and arguments[2:] in ([], ["{}"])
    return (
        call.func.attr == "add_provider_for_devices"
        and arguments[0] != "[]"
        and arguments[1:] == ["{}"]
    )


@pytest.mark.parametrize(
    ("silent", "asking"),
    [
        ("core.compile_model(m, 'CPU')", "core.compile_model(m, 'CPU', FLOAT32)"),
        ("ov.Core().import_model(b, 'CPU', {})", "ov.Core().import_model(b, 'CPU', FLOAT32)"),
        ("o.add_provider_for_devices(d(), {})", "o.add_provider_for_devices(d(), FLOAT32)"),
    ],
)
def test_a_peer_that_is_asked_for_nothing_is_seen(silent: str, asking: str) -> None:
    assert unasked(silent) == [silent]
    assert not unasked(asking)


@pytest.mark.parametrize("folder", ["benchmarks", "tests"])
def test_every_peer_is_asked_for_float32(folder: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): calls
        for path in (ROOT / folder).rglob("*.py")
        if (calls := unasked(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_a_benchmark_names_the_processor_the_peers_and_the_precision() -> None:
    line = conditions()
    assert line.startswith(read_facts().cpu)
    assert all(peer in line for peer in PEERS)
    assert "float32" in line
