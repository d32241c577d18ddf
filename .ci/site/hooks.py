"""Pages of the site that the repository has elsewhere, or that are generated from the code."""

from __future__ import annotations

import posixpath
import re
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import ctx_formats
import ort_lite
from ort_lite import ep
from ort_lite.cli.app import root
from ort_lite.cli.ignored_settings import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
}
"""Files outside of docs/ that are pages of the site."""
LINKED = re.compile(r"\s*:? ?\(?\[[^\]]*\]\([^)]*\)(?:, ort_lite only)?\)?")
"""A link with its parentheses and the words before and after it."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of docs/."""
    generated = {
        "reference/python.md": python_page(),
        "reference/execution_providers.md": execution_providers_page(),
        "reference/ctx_formats.md": file_formats_page(),
        "reference/commands.md": commands_page(),
        "reference/settings.md": settings_page(),
        "adr/index.md": decisions_page(),
    }
    for source, page in ELSEWHERE.items():
        generated[page] = (ROOT / source).read_text(encoding="utf-8")
    for page, content in generated.items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(
    markdown: str,
    page: Page,
    config: MkDocsConfig,  # noqa: ARG001 - mkdocs passes it by name
    files: Files,
) -> str:
    """Point links at pages of the site; a link to source code becomes its text."""
    here = page.file.src_uri
    source = next((s for s, p in ELSEWHERE.items() if p == here), f"docs/{here}")

    def rewrite(match: re.Match[str]) -> str:
        image, text, target, anchor = match.groups()
        destination = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if destination == "docs/adr":
            destination = "docs/adr/index.md"
        uri = ELSEWHERE.get(destination) or destination.removeprefix("docs/")
        if destination in ELSEWHERE or (
            destination.startswith("docs/") and files.get_file_from_path(uri)
        ):
            path = posixpath.relpath(uri, posixpath.dirname(here) or ".")
            return f"{image}[{text}]({path}{anchor or ''})"
        if not (ROOT / destination).exists():
            return match[0]  # mkdocs reports it
        return text if text.startswith("`") else f"{text} (`{destination}`)"

    return LINK.sub(rewrite, markdown)


def python_page() -> str:
    """Every public name of ort_lite, from its docstring."""
    lines = ["# Python API", "", "`import ort_lite as ort` has these names.", ""]
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in sorted(ort_lite.__all__, key=str.lower):
        value = getattr(ort_lite, name)
        if isinstance(value, type):
            groups["Errors" if issubclass(value, BaseException) else "Classes"].append(name)
        elif callable(value):
            groups["Functions"].append(name)
    for group, names in groups.items():
        lines += [f"## {group}", ""]
        for name in names:
            lines += [f"::: {definition_of(name)}", ""]
    return "\n".join(lines)


def execution_providers_page() -> str:
    """Every name of ort_lite.ep that ort_lite itself does not have, too."""
    homes = ep._HOME_OF  # noqa: SLF001 - the package's own table of them
    shared = sorted(set(homes) & set(ort_lite.__all__))
    lines = ["# Execution providers", "", "`ort_lite.ep` has these names, and of the"]
    lines += [f"[Python API](python.md) {', '.join(f'`{name}`' for name in shared)}.", ""]
    for name in sorted(set(homes) - set(shared), key=str.lower):
        lines += [f"::: {homes[name]}.{name}", ""]
    return "\n".join(lines)


def file_formats_page() -> str:
    """Every public name of ctx_formats, under the module that defines it."""
    lines = [
        "# File formats in Python",
        "",
        "`ctx_formats` has these names, apart from those",
        "of the [execution-provider API](execution_providers.md).",
        "",
    ]
    for name in sorted(set(ctx_formats.__all__) - set(ep.__all__), key=str.lower):
        home = getattr(getattr(ctx_formats, name), "__module__", "ctx_formats")
        lines += [f"::: {home}.{name}", ""]
    return "\n".join(lines)


def definition_of(name: str) -> str:
    """The dotted name under which a public name is defined."""
    value = getattr(ort_lite, name)
    if isinstance(value, ModuleType):  # a package that is called like the function in it
        return f"{value.__name__}.{name}"
    return f"{value.__module__}.{value.__qualname__}"


def commands_page() -> str:
    """The help of every command."""
    lines = ["# Command line", ""]
    for path, command, context in walk_commands(root, "ort-lite", None):
        lines += [f"{'#' * min(len(path.split()) + 1, 4)} {path}", ""]
        lines += ["```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def walk_commands(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """A command and those below it, with the words that call each."""
    context = click.Context(command, info_name=name, parent=parent, max_content_width=90)
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            subcommand = command.get_command(context, child)
            if subcommand is not None and not subcommand.hidden:
                yield from walk_commands(subcommand, child, context)


def settings_page() -> str:
    """Configuration entries with the pages that define them, and options by provider."""
    lines = ["# Configuration entries and provider options", "", "## Configuration entries", ""]
    lines += ["`SessionOptions.add_session_config_entry(key, value)` sets them.", ""]
    lines += ["| key | meaning |", "| --- | --- |"]
    rows = dict(entry_rows())
    for key in sorted(ENTRIES):
        if key not in rows:
            raise PluginError(f"no table in docs/ describes the configuration entry {key}")
        meaning, page = rows[key]
        lines.append(f"| `{key}` | {meaning} ([more](../{page})) |")
    for entry in sorted(entry_points(group="ort_lite.execution_providers"), key=lambda e: e.name):
        options = getattr(entry.load(), "options", {})
        lines += ["", f"## {entry.name}", ""]
        if not options:
            lines += ["No options."]
            continue
        lines += ["| option | meaning |", "| --- | --- |"]
        lines += [f"| `{name}` | {text} |" for name, text in options.items()]
    return "\n".join(lines) + "\n"


def entry_rows() -> Iterator[tuple[str, tuple[str, str]]]:
    """Key, meaning and page of each row of a table of entries in the documentation."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            keys = re.findall(r"`((?:session|ep|optimization)\.[\w.]+)`", cells[0])
            for key in keys if line.startswith("|") and len(cells) > 1 else ():
                meaning = re.sub(r" \((below|(below, )?ort_lite only)\)", "", cells[-1])
                meaning = LINKED.sub("", meaning)
                yield key, (meaning, path.name)


def decisions_page() -> str:
    """The list of architecture decision records."""
    lines = ["# Decisions", "", "Each page records one decision and what was weighed.", ""]
    for path in sorted((ROOT / "docs" / "adr").glob("0*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title.replace('. ', ': ', 1)}]({path.name})")
    return "\n".join(lines) + "\n"
