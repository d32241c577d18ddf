"""What wild.py measured, as tables, and which models miss a limit."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.harness.engines import OURS, OURS_CPU, OURS_OPENCL, PEER, PEER_CPU
from benchmarks.harness.measure import ratio
from benchmarks.harness.report import NOTHING, text_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.harness.report import Found

DEFAULT = "ort_lite[default]"
CACHED = ", cached"
START, LOAD, RUN, START_CPU, RUN_CPU = "", "load", "run", "cpu", "run cpu"
MOST = 1.10
"""Over onnxruntime's CPU execution provider, in every run and start that counts."""
MOST_ON_CPU, MEDIAN_ON_CPU = 3.5, 2.0
"""Of runs on ort_lite's CPU EP."""
MEDIAN_OF_RUNS = 0.7
"""Of runs with the default list, over all models."""
APART = 2e-2
"""Largest difference from onnxruntime's outputs: an int8 model rounds by the range of its inputs,
and engines differ by steps of int8; accuracy.py has the narrow limits."""
LIMITS = {
    (DEFAULT, RUN): MOST,
    (DEFAULT, START): MOST,
    (DEFAULT + CACHED, RUN): MOST,
    (DEFAULT + CACHED, START): MOST,
    (OURS + CACHED, RUN): MOST,
    (OURS + CACHED, START): MOST,
    (OURS_OPENCL + CACHED, RUN): MOST,
    (OURS_OPENCL + CACHED, START): MOST,
    (OURS_CPU, RUN): MOST_ON_CPU,
}
SHOWN = {
    "default": DEFAULT,
    "cached": DEFAULT + CACHED,
    "OpenVINO": OURS,
    "OV cached": OURS + CACHED,
    "OpenCL": OURS_OPENCL,
    "CL cached": OURS_OPENCL + CACHED,
    "CPU": OURS_CPU,
    "plug-in": PEER,
}
"""The columns of each table: over onnxruntime's CPU execution provider."""
TITLES = {
    RUN: "Runs after the first: milliseconds of onnxruntime's CPU EP, and times over that",
    START: "First answers, from the start of the process, imports included",
    RUN_CPU: "Processor time of a run",
    START_CPU: "Processor time until the first answer",
    LOAD: "Loading: a session made, its engine imported before",
}
LEGEND = f"""
default: ort_lite without a list of providers. OpenVINO, OpenCL: that EP with CPU. CPU: that alone.
cached: from the second start on, with the model cache. plug-in: onnxruntime-ep-openvino.
>: over the limit ({MOST} of onnxruntime's time; {MOST_ON_CPU} for runs on the CPU EP).
"""


def tables(results: Mapping[str, Found]) -> str:
    """All of them, then medians and what misses a limit."""
    text = "".join(f"{TITLES[step]}\n\n{_ratios(results, step)}\n" for step in TITLES)
    text += f"Peak memory in MiB\n\n{_peaks(results)}\n"
    text += LEGEND + "\n".join(medians(results)) + "\n"
    lines = misses(results)
    text += f"{len(lines)} misses\n" + "".join(f"  {line}\n" for line in lines)
    return text + "".join(f"{line}\n" for line in _absent(results))


def misses(results: Mapping[str, Found]) -> list[str]:
    """One line for each variant of a model that is too slow, absent, or answers otherwise."""
    lines = []
    for model, measured in results.items():
        for (variant, step), most in LIMITS.items():
            value = _ratio(measured, variant, step)
            if value is not None and value > most:
                lines.append(f"{model}: {variant} {step or 'start'} {value:.2f}, limit {most}")
        for variant in _measured_variants(measured):
            apart = measured[variant].facts.get("difference", 0.0)
            if apart > APART:
                lines.append(f"{model}: {variant} differs from onnxruntime by {apart:.1e}")
            elif measured[variant].absent and variant != PEER and not measured[PEER_CPU].absent:
                lines.append(f"{model}: {variant} does not run: {measured[variant].absent}")
    return lines


def medians(results: Mapping[str, Found]) -> list[str]:
    """Of runs, over all models, with their limits."""
    lines = []
    for variant, most in ((DEFAULT, MEDIAN_OF_RUNS), (OURS_CPU, MEDIAN_ON_CPU)):
        ratios = [_ratio(measured, variant, RUN) for measured in results.values()]
        values = [value for value in ratios if value is not None]
        if values:
            value = median(values)
            mark = ">" if value > most else ""
            lines.append(f"median run, {variant}: {mark}{value:.2f} of {len(values)}, limit {most}")
    return lines


def _ratios(results: Mapping[str, Found], step: str) -> str:
    rows = []
    for model, measured in results.items():
        cells = [_milliseconds(measured, step)]
        for variant in SHOWN.values():
            value, most = _ratio(measured, variant, step), LIMITS.get((variant, step))
            over = value is not None and most is not None and value > most
            cells.append(NOTHING if value is None else f"{'>' if over else ''}{value:.2f}")
        rows.append((model, *cells))
    return text_table(("model", "ort ms", *SHOWN), rows)


def _peaks(results: Mapping[str, Found]) -> str:
    columns = {"ort": PEER_CPU, **SHOWN}
    rows = [
        (
            model,
            *(
                NOTHING if _is_absent(measured, v) else f"{measured[v].peak_rss / 2**20:.0f}"
                for v in columns.values()
            ),
        )
        for model, measured in results.items()
    ]
    return text_table(("model", *columns), rows)


def _absent(results: Mapping[str, Found]) -> list[str]:
    reasons = [
        f"{model}: {variant}: {measured[variant].absent}"
        for model, measured in results.items()
        for variant in (PEER_CPU, PEER)
        if variant in measured and measured[variant].absent
    ]
    return [f"{NOTHING}: {line}" for line in dict.fromkeys(reasons)]


def _measured_variants(measured: Found) -> list[str]:
    return [variant for variant in SHOWN.values() if variant in measured]


def _is_absent(measured: Found, variant: str) -> bool:
    return variant not in measured or bool(measured[variant].absent)


def _ratio(measured: Found, variant: str, step: str) -> float | None:
    if _is_absent(measured, variant) or measured[PEER_CPU].absent:
        return None
    return ratio(measured, f"{variant} {step}".rstrip(), f"{PEER_CPU} {step}".rstrip())


def _milliseconds(measured: Found, step: str) -> str:
    if measured[PEER_CPU].absent:
        return NOTHING
    value = measured[f"{PEER_CPU} {step}".rstrip()].seconds * 1000
    return f"{value:.{2 if value < 10 else 1}f}"
