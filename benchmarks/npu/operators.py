"""Asks an NPU's compiler for cases of ONNX's test suite whether it compiles them; without the NPU.

`python benchmarks/npu/operators.py LOG.jsonl --platforms 3720,4000` appends a line for each case
and platform, and goes on where an earlier run ended: a case that ends the process is skipped by
the next one. `--table LOG.jsonl` prints the table; `--write JSON` writes the one by which nodes
are offered (eps/openvino/support/npu_tables). Cases with dynamic shapes, text or control flow are
left out: the NPU plug-in is given none of these.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import openvino as ov
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from eps.openvino.support.npu_table import FORMAT
from eps.openvino.support.offer import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


SHAPED_BY_VALUE = ("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow")
"""Operators whose only input, a constant in models in use, is their output's shape."""
SCALED = ("Resize", "Upsample")
"""Operators whose scales, of any rank, models in use have as a constant."""
FEW = 2
"""Elements of an input that models in use have as a constant: OneHot's values, Clip's bounds."""


def cases(most: int, operators: set[str]) -> Iterator[tuple[str, str, onnx.ModelProto]]:
    """Operator, name and model of the chosen cases.

    Args:
        most: Cases of an operator, in the order of their names.
        operators: Names; empty for all.
    """
    chosen: dict[str, int] = defaultdict(int)
    skipped = {"If", "Loop", "Scan", "SequenceMap", *SHAPED_BY_VALUE}
    for case in sorted(collect_testcases(None), key=lambda case: str(case.name)):
        model = case.model
        if model is None or len(model.graph.node) != 1 or "_expanded" in case.name:
            continue
        node = model.graph.node[0]
        key = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
        if operators and key not in operators:
            continue
        if key not in skipped and chosen[key] < most and _is_static(model):
            chosen[key] += 1
            values = case.data_sets[0][0] if case.data_sets else ()
            yield key, case.name, _with_constants(model, values)


def _with_constants(model: onnx.ModelProto, values: Sequence[object]) -> onnx.ModelProto:
    """The model with later inputs that are constants in models in use: integers, small ones."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for info, value in list(zip(made.graph.input, values, strict=False))[1:]:
        array = np.asarray(value)
        is_chosen = array.dtype in (np.int64, np.int32) or made.graph.node[0].op_type in SCALED
        if is_chosen or (array.size <= FEW and array.dtype.kind in "fiub"):
            made.graph.initializer.append(numpy_helper.from_array(array, info.name))
            made.graph.input.remove(info)
    return made


def _is_static(model: onnx.ModelProto) -> bool:
    for info in model.graph.input:
        tensor = info.type.tensor_type
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if not info.type.HasField("tensor_type") or tensor.elem_type == onnx.TensorProto.STRING:
            return False
        if not all(size > 0 for size in sizes):
            return False
    return True


def ask(core: ov.Core, model: onnx.ModelProto, platform: str) -> dict[str, str]:
    """What the plug-in and its compiler answer: ok, or the last line of their error."""
    config = {"NPU_PLATFORM": platform}
    answers = {}
    try:
        converted = core.read_model(io.BytesIO(model.SerializeToString()))
    except RuntimeError as exc:
        return {"convert": _last_line(exc)}
    try:
        known = core.query_model(converted, "NPU", config)
        names = {operation.get_friendly_name() for operation in converted.get_ops()}
        answers["query"] = "ok" if names <= known.keys() else "no"
    except RuntimeError as exc:
        answers["query"] = _last_line(exc)
    try:
        core.compile_model(converted, "NPU", config)
        answers["compile"] = "ok"
    except RuntimeError as exc:
        answers["compile"] = _last_line(exc)
    return answers


def _last_line(exc: Exception) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(exc).__name__


def record(log: Path, platforms: list[str], most: int, operators: set[str]) -> None:
    """Append what is not in the log yet."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    recorded = {(entry["case"], entry["platform"]) for entry in map(json.loads, lines)}
    core = ov.Core()
    with log.open("a", encoding="utf-8") as file:
        for op, name, model in cases(most, operators):
            for platform in platforms:
                if (name, platform) in recorded:
                    continue
                entry: dict[str, Any] = {"op": op, "case": name, "platform": platform}
                file.write(json.dumps(entry) + "\n")
                file.flush()
                file.write(json.dumps({**entry, **ask(core, model, platform)}) + "\n")
                file.flush()


def table(log: Path) -> str:
    """Operators that some platform refuses, and how many all of them compile, as Markdown."""
    answers: dict[tuple[str, str], dict[str, str]] = {}
    operators: dict[str, str] = {}
    for entry in map(json.loads, log.read_text("utf-8").splitlines()):
        key = entry["case"], entry["platform"]
        operators[entry["case"]] = entry["op"]
        answers[key] = {k: v for k, v in entry.items() if k in ("convert", "query", "compile")}
    platforms = sorted({platform for _, platform in answers})
    verdicts: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    why: dict[str, str] = {}
    queried = refused_after = 0
    for (case, platform), answer in answers.items():
        if "convert" in answer:
            verdicts[operators[case]]["front end"].append(False)
            why.setdefault(operators[case], answer["convert"])
            continue
        good = answer.get("compile") == "ok"
        verdicts[operators[case]][platform].append(good)
        queried += answer.get("query") == "ok"
        refused_after += answer.get("query") == "ok" and not good
        if not good:
            why[operators[case]] = answer.get("compile", "the compiler ended the process")
    head = ["operator", *platforms, "the last words"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    whole = 0
    for op in sorted(verdicts):
        row = verdicts[op]
        if all(all(row[p]) and row[p] for p in platforms) and not row["front end"]:
            whole += 1
            continue
        cells = [f"{sum(row[p])} of {len(row[p])}" if row[p] else "-" for p in platforms]
        reason = why.get(op, "").replace("|", "\\|")
        lines.append(f"| {op} | {' | '.join(cells)} | {reason} |")
    lines += [
        "",
        f"{whole} of {len(verdicts)} operators: all compile for every platform. query_model "
        f"accepted {queried} cases, of which the compiler then refused {refused_after}.",
    ]
    return "\n".join(lines)


def write_table(log: Path, target: Path) -> None:
    """Write how many cases of each operator compiled, for each platform, as offers need it.

    Cases with element types that the execution provider does not offer are left out.
    """
    outcomes: dict[tuple[str, str, str], bool] = {}
    for entry in map(json.loads, log.read_text("utf-8").splitlines()):
        key = entry["op"], entry["case"], entry["platform"]
        if "convert" in entry:
            outcomes.pop(key, None)
        else:
            outcomes[key] = outcomes.get(key, False) or entry.get("compile") == "ok"
    models = {name: model for _, name, model in cases(most=sys.maxsize, operators=set())}
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for (op, name, platform), compiled in sorted(outcomes.items()):
        if name in models and _has_offered_types(models[name]):
            counts[op][platform][0] += compiled
            counts[op][platform][1] += 1
    types = _refused_types(outcomes, models)
    release = ov.get_version().partition("-")[0]
    head = {"format": FORMAT, "openvino": release, "onnx": onnx.__version__}
    lines = [f"  {json.dumps(op)}: {json.dumps(counts[op])}" for op in sorted(counts)]
    operators = ",\n".join(lines)
    start = json.dumps(head).removesuffix("}")
    named = ",\n".join(f"  {json.dumps(op)}: {json.dumps(types[op])}" for op in sorted(types))
    text = f'{start}, "operators": {{\n{operators}\n}},\n"refused_types": {{\n{named}\n}}}}\n'
    target.write_text(text, encoding="utf-8")


def _refused_types(
    outcomes: Mapping[tuple[str, str, str], bool], models: Mapping[str, onnx.ModelProto]
) -> dict[str, dict[str, list[str]]]:
    """By operator and platform, element types of inputs of which no case compiled.

    Only where a case with as many inputs of other types compiled: the types are the reason then.
    """
    compiled: dict[tuple[str, str], dict[tuple[str, ...], bool]] = defaultdict(dict)
    for (op, name, platform), is_good in outcomes.items():
        if name in models and _has_offered_types(models[name]):
            outcome_of = compiled[op, platform]
            types = _input_types(models[name])
            outcome_of[types] = outcome_of.get(types, False) or is_good
    refused: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for (op, platform), outcome_of in sorted(compiled.items()):
        arities = {len(types) for types, is_good in outcome_of.items() if is_good}
        bad = [t for t, is_good in outcome_of.items() if not is_good and len(t) in arities]
        if bad:
            refused[op][platform] = sorted(",".join(types) for types in bad)
    return refused


def _input_types(model: onnx.ModelProto) -> tuple[str, ...]:
    graph = model.graph
    types = {info.name: info.type.tensor_type.elem_type for info in graph.input}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    names = graph.node[0].input
    return tuple(onnx.TensorProto.DataType.Name(types[n]) if n else "" for n in names)


def _has_offered_types(model: onnx.ModelProto) -> bool:
    graph = model.graph
    kinds = [info.type.tensor_type.elem_type for info in (*graph.input, *graph.output)]
    return all(kind in TYPES for kind in (*kinds, *(t.data_type for t in graph.initializer)))


def main() -> None:
    """Record, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--platforms", default="3720,4000,5010,5020")
    parser.add_argument("--most", type=int, default=1, help="cases of an operator")
    parser.add_argument("--operators", default="", help="names, separated by commas")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path, metavar="JSON", help="write npu_tables/RELEASE.json")
    options = parser.parse_args()
    if options.write:
        write_table(options.log, options.write)
    elif options.table:
        print(table(options.log))
    else:
        operators = set(filter(None, options.operators.split(",")))
        record(options.log, options.platforms.split(","), options.most, operators)


if __name__ == "__main__":
    main()
