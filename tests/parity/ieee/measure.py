"""Which operators of an execution provider lose NaN, infinities, the sign of zero or denormals.

    cd tests && python -m parity.ieee.measure OpenVINOExecutionProvider [option=value ...]

Runs ONNX's one-node cases and drawn ones with special values on the execution provider and on
onnxruntime's CPU EP, or on onnx.reference where onnxruntime does not load a case. Writes JSON to
stdout: how many cases were compared, and for each operator and special value the cases that differ,
with the kind of difference. Options with a dot are session config entries, others are provider
options; `only=Relu,Max` limits the operators.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from parity.ieee.poison import POISONS, node_cases

import ort_lite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parity.ieee.poison import Array, PoisonedCase

    Answers = dict[str, Sequence[Any]]

SMALLEST_NORMAL = 1.1754944e-38
RTOL, ATOL = 1e-3, 1e-5
CPU = "CPUExecutionProvider"

Differences = dict[str, dict[str, list[str]]]


def difference(found: Array, right: Array) -> str:
    """The worst kind of difference between two outputs; "" where they agree."""
    if found.shape != right.shape or found.dtype != right.dtype:
        return "shape or type"
    if right.dtype.kind != "f":
        return "" if np.array_equal(found, right) else "value"
    found, right = found.astype(np.float64), right.astype(np.float64)
    mine, theirs = np.isnan(found), np.isnan(right)
    if np.any(theirs & ~mine):
        return "loses NaN"
    if np.any(mine & ~theirs):
        return "makes NaN"
    endless = np.isinf(right) | np.isinf(found)
    if not np.array_equal(np.where(endless, found, 0), np.where(endless, right, 0)):
        return "infinity"
    found, right = found[np.isfinite(right)], right[np.isfinite(right)]
    if not np.allclose(found, right, rtol=RTOL, atol=ATOL):
        return "value"
    zero = (right == 0) & (found == 0)
    if np.any(np.signbit(found[zero]) != np.signbit(right[zero])):
        return "sign of zero"
    small = (np.abs(right) < SMALLEST_NORMAL) & (right != 0)
    return "denormal" if np.any(found[small] == 0) else ""


def right_answers(case: PoisonedCase) -> Answers:
    """Special value, and "plain" for none, to the right answers; none where nobody computes it."""
    model = case.twin or case.model
    runner = onnxruntime_session(model) or _reference(model)
    answers: Answers = {}
    for name, value in {"plain": None, **POISONS}.items():
        if runner is None:
            break
        feed = dict(case.feed) if value is None else case.poisoned(value)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy's, of NaN
                answers[name] = runner.run(None, feed)
        except Exception:  # noqa: BLE001 - of many classes; nothing to compare with
            continue
    return answers


def onnxruntime_session(model: bytes) -> Any:
    """onnxruntime's CPU EP without optimizations; None where it does not load the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model, options, providers=[CPU])
    except Exception:  # noqa: BLE001 - the binding raises plain exceptions of many classes
        return None


def _reference(model: bytes) -> Any:
    try:
        return ReferenceEvaluator(onnx.ModelProto.FromString(model))
    except Exception:  # noqa: BLE001 - as above
        return None


def compare(
    case: PoisonedCase, ours: ort_lite.InferenceSession, right: Answers, counts: Counter[str]
) -> dict[str, str]:
    """Special value to the worst difference that it makes."""
    found: dict[str, str] = {}
    for name, expected in right.items():
        feed = dict(case.feed) if name == "plain" else case.poisoned(POISONS[name])
        counts[name] += 1
        try:
            answers = ours.run(None, feed)
        except ort_lite.OrtLiteError as exc:
            found[name] = f"error: {exc}"[:80]
            continue
        pairs = zip(answers, expected, strict=True)
        known = [
            difference(np.asarray(a), np.asarray(b)) for a, b in pairs if not isinstance(b, list)
        ]
        worst = next(filter(None, known), "")
        if worst:
            found[name] = worst
    return found


def open_on(
    case: PoisonedCase, provider: str, options: Mapping[str, str], entries: Mapping[str, str]
) -> ort_lite.InferenceSession | None:
    """A session whose node is on the provider; None if the provider does not accept it."""
    config = ort_lite.SessionOptions()
    config.log_severity_level = 4
    for key, value in {"session.placement": "all", **entries}.items():
        config.add_session_config_entry(key, value)
    try:
        ours = ort_lite.InferenceSession(
            case.model, config, providers=[(provider, dict(options))], enable_fallback=0
        )
    except ort_lite.NotImplemented:  # an operator that is newer than the case's opset
        return None
    if any(part.ep == provider for part in ours.explain().partitions):
        return ours
    ours.close()
    return None


def measure(
    provider: str, options: Mapping[str, str], entries: Mapping[str, str], only: Sequence[str] = ()
) -> tuple[Counter[str], Differences]:
    """Counts, and operator to special value to "case: difference"."""
    counts: Counter[str] = Counter()
    differences: Differences = defaultdict(lambda: defaultdict(list))
    for case in node_cases():
        if only and case.operator not in only:
            continue
        ours = open_on(case, provider, options, entries)
        if ours is None:
            counts["not on the execution provider"] += 1
            continue
        with ours:
            counts["cases"] += 1
            for name, worst in compare(case, ours, right_answers(case), counts).items():
                differences[case.operator][name].append(f"{case.name}: {worst}")
    return counts, differences


def main() -> None:
    """Measure as the arguments say."""
    provider, *pairs = sys.argv[1:]
    given = dict(pair.split("=", 1) for pair in pairs)
    only = given.pop("only", "")
    entries = {key: value for key, value in given.items() if "." in key}
    options = {key: value for key, value in given.items() if "." not in key}
    counts, differences = measure(provider, options, entries, only.split(",") if only else ())
    sys.stdout.write(json.dumps({"counts": counts, "differences": differences}, indent=1) + "\n")


if __name__ == "__main__":
    main()
