"""JUnit XML of results: one testsuite for each row and suite, hardware facts as properties."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ort_lite.hw.cross_result import CrossResult
    from ort_lite.hw.result import CaseResult, RowResult

_LEGAL = {chr(code): None for code in range(32) if chr(code) not in "\t\n\r"}
_STRIP = str.maketrans(dict.fromkeys(_LEGAL, ""))
"""XML 1.0 has no other control characters, and logs do."""


def junit_xml(results: Iterable[RowResult], cross: CrossResult | None = None) -> bytes:
    """The whole file; loads of a cross-load table are a suite of their own."""
    root = ET.Element("testsuites")
    for result in results:
        if result.status in ("wrong_hardware", "environment", "lost"):
            suite = _suite(root, result, result.status, ())
            case = ET.SubElement(suite, "testcase", classname=result.row, name=result.status)
            ET.SubElement(case, "error", message=_clean("; ".join(result.lacks)))
            suite.set("tests", "1")
            suite.set("errors", "1")
            continue
        for name in result.suites:
            _suite(root, result, name, result.of_suite(name))
        rest = tuple(case for case in result.cases if case.suite not in result.suites)
        if rest:
            _suite(root, result, "run", rest)
    if cross is not None:
        _loads(root, cross)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _suite(
    root: ET.Element, result: RowResult, name: str, cases: tuple[CaseResult, ...]
) -> ET.Element:
    suite = ET.SubElement(
        root,
        "testsuite",
        name=f"{result.row} {name}",
        timestamp=result.started,
        tests=str(len(cases)),
        failures=str(sum(case.is_bad for case in cases)),
        errors="0",
        skipped=str(sum(case.outcome in ("skipped", "expected_failure") for case in cases)),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    facts = {**result.host, **result.identity, "commit": result.commit}
    properties = ET.SubElement(suite, "properties")
    for key, value in facts.items():
        ET.SubElement(properties, "property", name=key, value=_clean(value))
    for case in cases:
        _case(suite, result, case)
    return suite


def _case(suite: ET.Element, result: RowResult, case: CaseResult) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        classname=f"{result.row}.{case.suite}",
        name=case.name,
        time=f"{case.seconds:.3f}",
    )
    message = _clean(case.message)
    if case.is_bad:
        problem = ET.SubElement(element, "failure", type=case.outcome, message=message)
        problem.text = _clean(case.details)
    elif case.outcome in ("skipped", "expected_failure"):
        ET.SubElement(element, "skipped", type=case.outcome, message=message)


def _loads(root: ET.Element, cross: CrossResult) -> None:
    bad = sum(not cell.as_expected for cell in cross.cells)
    suite = ET.SubElement(
        root,
        "testsuite",
        name="crossload",
        timestamp=cross.started,
        tests=str(len(cross.cells)),
        failures=str(bad),
        errors="0",
        skipped="0",
    )
    for cell in cross.cells:
        element = ET.SubElement(
            suite,
            "testcase",
            classname=f"crossload.{cell.loader}",
            name=f"{cell.model} of {cell.builder}",
            time=f"{cell.seconds:.3f}",
        )
        if not cell.as_expected:
            expected = f"{cell.verdict_text}, expected {cell.expected or 'nothing'}"
            problem = ET.SubElement(element, "failure", type=cell.verdict, message=expected)
            problem.text = _clean(cell.message)


def _clean(text: str) -> str:
    return text.translate(_STRIP)
