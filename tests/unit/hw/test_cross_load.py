"""Who loads whose contexts: every verdict is seen, and held to what the matrix expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ort_lite.hw.cross_result import read_cross

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.hw.conftest import OddProject

    Make = Callable[..., OddProject]

A, NEWER, OTHER, LIE = "odd[do=right]", "odd[do=newer]", "odd[do=other]", "odd[do=lie]"


def cross(project: OddProject, *arguments: object) -> tuple[int, dict[str, Any]]:
    places = ["--out", project.results, "--environments", project.environments]
    return project.call("crossload", *places, *arguments)


def found(told: dict[str, Any]) -> dict[tuple[str, str], str]:
    cells = told["cells"]
    return {(c["builder"], c["loader"]): f"{c['verdict']} {c['reason']}".strip() for c in cells}


def test_rows_load_what_they_may_and_refuse_the_rest(odd: Make) -> None:
    project = odd()
    code, told = cross(project, A, NEWER, OTHER)
    refused = "invalid_graph hardware_architecture"
    assert found(told) == {
        (A, A): "optimal",
        (A, NEWER): "recompile_advised",
        (A, OTHER): refused,
        (NEWER, A): "recompile_advised",
        (NEWER, NEWER): "optimal",
        (NEWER, OTHER): refused,
        (OTHER, A): refused,
        (OTHER, NEWER): refused,
        (OTHER, OTHER): "optimal",
    }
    assert code == 0
    assert all(cell["as_expected"] for cell in told["cells"])
    written = read_cross([project.results])
    assert written is not None
    assert len(written.cells) == 9


def test_another_verdict_than_expected_fails(odd: Make) -> None:
    project = odd(cross=[("*", "*", "invalid_graph", "driver_version")])
    code, told = cross(project, A)
    assert code == 1
    (cell,) = told["cells"]
    assert (cell["verdict"], cell["expected"]) == ("optimal", "invalid_graph(driver_version)")


def test_a_pair_of_which_nothing_is_expected_fails(odd: Make) -> None:
    project = odd(cross=[("*other]", "*other]", "optimal", "")])
    code, told = cross(project, A)
    assert (code, told["cells"][0]["expected"]) == (1, "")


@pytest.mark.parametrize(
    ("loader", "verdict"), [(LIE, "wrong_numbers"), ("odd[do=crash]", "crashed")]
)
def test_wrong_numbers_and_crashes_are_verdicts_too(odd: Make, loader: str, verdict: str) -> None:
    project = odd()
    cross(project, A, "--build-only")
    built = project.results / "crossload" / "odd-do-right"
    _, told = cross(project, loader, "--contexts", built)
    assert {c["builder"]: c["verdict"] for c in told["cells"]}[A] == verdict


def test_a_context_damaged_between_build_and_load_is_refused(odd: Make) -> None:
    project = odd()
    assert cross(project, A, "--build-only")[0] == 0
    built = project.results / "crossload" / "odd-do-right"
    (payload,) = built.glob("contexts/*.bin")
    content = bytearray(payload.read_bytes())
    content[-1] ^= 1
    content[len(content) // 2] ^= 1
    payload.unlink()
    payload.write_bytes(content)
    code, told = cross(project, A, "--contexts", built)
    assert code == 1
    (cell,) = told["cells"]
    assert cell["verdict"] == "invalid_graph"
    assert cell["reason"] in ("integrity", "format")
    assert cell["expected"] == "optimal"
    project.run("cpu")
    code, _ = project.call("report", project.results, "--out", project.root / "report")
    assert code == 1
    page = (project.root / "report/index.html").read_text("utf-8")
    assert f'title="dense: invalid_graph({cell["reason"]}); expected optimal">G<' in page


def test_a_folder_without_contexts_is_a_usage_error(odd: Make) -> None:
    project = odd()
    code, told = cross(project, A, "--contexts", project.root)
    assert (code, "no built.json" in told["error"]["message"]) == (2, True)
