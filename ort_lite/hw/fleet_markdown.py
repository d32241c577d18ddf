"""What a compiler takes of each model for each target, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.hw.compile_targets import CompiledModel, FleetResult

HEAD = """\
Contexts for absent devices, made on one machine. That a compiler takes a node does not show that
the device computes it right: numbers stay unproven until the row runs on its hardware.
"""


def fleet_markdown(result: FleetResult) -> str:
    """Tables of nodes and partitions, of what is left to other providers, and of artefacts."""
    lines = ["# Compiled for a fleet", "", HEAD]
    versions = ", ".join(f"{name} {version}" for name, version in result.compilers.items())
    lines += [f"Compilers: {versions or 'none'}. Commit: {result.commit or 'unknown'}.", ""]
    lines += [
        *_coverage(result),
        *_remaining_text(result),
        *_requirements(result),
        *_not_compiled(result),
    ]
    return "\n".join([*lines, *_artifacts(result)]) + "\n"


def _coverage(result: FleetResult) -> Iterator[str]:
    rows = [row for row in result.rows if row.models]
    if not rows:
        return
    yield "## Nodes taken, in how many partitions"
    yield ""
    by_row = [{model.model: model for model in row.models} for row in rows]
    names = list(dict.fromkeys(name for models in by_row for name in models))
    cells = [[name, *(_cell(models.get(name)) for models in by_row)] for name in names]
    yield from _table(["model", *(row.target for row in rows)], cells)


def _cell(model: CompiledModel | None) -> str:
    if model is None:
        return ""
    if model.problem:
        return "**failed**"
    taken = sum(model.taken.values())
    total = taken + sum(count for count, _ in model.left.values())
    return f"{taken} of {total} in {model.partitions}"


def _remaining_text(result: FleetResult) -> Iterator[str]:
    """One line for each model, operator and reason, with the targets that it is true of."""
    targets: dict[tuple[str, str, int, str], list[str]] = {}
    for row in result.rows:
        for model in row.models:
            for op, (count, why) in model.left.items():
                targets.setdefault((model.model, op, count, why), []).append(row.target)
            if model.problem:
                key = (model.model, "", 0, model.problem)
                targets.setdefault(key, []).append(row.target)
    if not targets:
        return
    yield "## Left to other providers"
    yield ""
    cells = [
        [model, f"{op} x{count}" if op else "all", ", ".join(where), why]
        for (model, op, count, why), where in targets.items()
    ]
    yield from _table(["model", "operator", "targets", "reason"], cells)


def _requirements(result: FleetResult) -> Iterator[str]:
    texts = {
        row.target: next((m.requirements for m in row.models if m.requirements), "")
        for row in result.rows
        if row.models
    }
    if not texts:
        return
    yield "## What the payloads need"
    yield ""
    yield from _table(["target", "the compiler's words"], [[t, f"`{x}`"] for t, x in texts.items()])


def _not_compiled(result: FleetResult) -> Iterator[str]:
    rows = [[f"`{row.row}`", row.why_not] for row in result.rows if row.why_not]
    if rows:
        yield "## Not compiled here"
        yield ""
        yield from _table(["row", "why"], rows)


def _artifacts(result: FleetResult) -> Iterator[str]:
    rows = [
        [f"`{file.path}`", f"{file.bytes:,}", f"`{file.sha256}`"]
        for row in result.rows
        for model in row.models
        for file in model.files
    ]
    if rows:
        yield "## Artefacts"
        yield ""
        yield from _table(["file", "bytes", "SHA-256"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""
