"""No file of the product imports, by any road, a file that imports it.

Counted are imports at the top, under TYPE_CHECKING and inside functions: a circle of types is a
circle, too, for whoever reads one file to understand the other.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[3]
PACKAGES = ("ctx_formats", "ort_lite", "eps")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Pairs (module, attribute or ""); an attribute may be a module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), alias.name) for alias in node.names)


def import_graph() -> dict[str, set[str]]:
    """By module of the product, the modules of the product that it names in an import."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = {module_name(path): path for path in paths}
    graph = {}
    for module, path in modules.items():
        named = set()
        for source, attribute in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            inner = f"{source}.{attribute}"
            named.add(inner if inner in modules else source)
        graph[module] = (named & modules.keys()) - {module}
    return graph


def cycles(graph: Mapping[str, set[str]]) -> set[tuple[str, ...]]:
    """Strongly connected components of two modules or more (Tarjan), each sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[tuple[str, ...]] = set()

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in graph[module]:
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            at = stack.index(module)
            component = tuple(sorted(stack[at:]))
            del stack[at:]
            if len(component) > 1:
                found.add(component)

    for module in graph:
        if module not in order:
            visit(module)
    return found


def test_no_file_of_the_product_is_in_a_circle_of_imports() -> None:
    assert cycles(import_graph()) == set()


def test_a_circle_is_found_through_any_number_of_files() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}
    assert cycles(graph) == {("a", "b", "c")}


def test_imports_for_types_and_inside_functions_count() -> None:
    text = "if TYPE_CHECKING:\n    from a import b\ndef f():\n    import c.d\n"
    assert set(imported_names(ast.parse(text))) == {("a", "b"), ("c.d", "")}


if __name__ == "__main__":
    circles = cycles(import_graph())
    for circle in sorted(circles):
        sys.stderr.write(f"circle of imports: {', '.join(circle)}\n")
    sys.exit(bool(circles))
