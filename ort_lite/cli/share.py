"""`ort-lite share`: compiles several models to context models that share a payload file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctx_formats.removal import remove_file
from ort_lite.cli.context_files import (
    default_context_path,
    files_json,
    list_files,
    print_files,
)
from ort_lite.cli.device_lines import summarize_compiled
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import json_option, print_json, print_note
from ort_lite.cli.session_choice import open_session, require_devices, session_choice
from ort_lite.context.quote_argument import quote_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.planning.explain import SessionReport

NOT_ALLOWED = "ep.context_file_path"
FORCED = {"ep.context_enable": "1", "ep.context_embed_mode": "0"}


@click.command(short_help="Compile models that share weights into one payload file.")
@click.argument("models", nargs=-1, required=True)
@click.option(
    *("-i", "--provider-options"), "provider_pairs", default="", metavar='"KEY|VALUE ..."',
    help="Execution-provider options, in the form of ep_weight_sharing_ctx_gen.",
)  # fmt: skip
@click.option(
    *("-C", "--config-entries"), "config_pairs", default="", metavar='"KEY|VALUE ..."',
    help="Session configuration entries, in the same form.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace existing context models of the group.")
@session_choice
@json_option
def share(
    models: Sequence[str],
    *,
    provider_pairs: str,
    config_pairs: str,
    force: bool,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Compile MODELS, separated by spaces or commas, as one session group.

    Writes MODEL_ctx.onnx next to each model, and one payload file per execution provider, named
    after the first model. The files appear together or not at all. Existing context models are
    replaced only with --force, once all new ones are complete.
    """
    # A name with a comma is a file's or a list.
    lists = [[text] if Path(text).is_file() else text.split(",") for text in models]
    paths = [Path(name) for names in lists for name in names if name]
    if not paths:
        raise click.UsageError("no model named")
    twice = [path for count, path in enumerate(paths) if path in paths[:count]]
    if twice:
        raise click.UsageError(f"{twice[0]} is named twice")
    chosen = _merge_options(choice, provider_pairs, config_pairs)
    present = [target for target in map(default_context_path, paths) if target.exists()]
    if present and not force:
        require_devices(chosen)  # without its device, --force would fail as well
        raise CommandError(
            ExitCode.COMPILE_FAILED,
            f"{present[0]} exists already",
            hint="--force replaces the context models of the group",
        )
    replaced = _replaceable_payloads(present)
    targets, reports = _compile_group(paths, chosen, replace_models=force)
    files = list_files(targets)
    _remove_payloads([path for path in replaced if path not in files])
    if as_json:
        print_json(
            {
                "models": [str(path) for path in paths],
                "files": files_json(files),
            }
        )
        return ExitCode.OK
    print_files(files)
    for line in dict.fromkeys(map(summarize_compiled, reports)):
        print_note(line)
    return ExitCode.OK


def _compile_group(
    paths: Sequence[Path], choice: SessionChoice, *, replace_models: bool
) -> tuple[list[Path], list[SessionReport]]:
    """The context models and their sessions' reports, in the order of `paths`."""
    from ort_lite.context.shared_contexts import SharedContexts

    reports = []
    with SharedContexts(replace=replace_models) as group:
        for path in paths:
            with open_session(path, replace(choice, group=group), FORCED) as session:
                reports.append(session.explain())
        missing = [p for p in paths if default_context_path(p) not in group.waiting_models]
        if missing:
            raise CommandError(
                ExitCode.COMPILE_FAILED,
                f"no execution provider that supports contexts compiled a node of "
                f"{', '.join(map(str, missing))}; nothing was written",
                hint=f"run ort-lite explain {quote_argument(str(missing[0]))} to see why",
            )
    return [default_context_path(path) for path in paths], reports


def _replaceable_payloads(targets: Sequence[Path]) -> list[Path]:
    """Payload files of existing context models that no other model can use.

    These are files all of whose payloads belong to `targets`.
    """
    from ctx_formats.container_reader import read_container
    from ctx_formats.copied_file import open_file
    from ort_lite.cli.model_facts import read_facts
    from ort_lite.status import OrtLiteError

    used: dict[Path, set[str]] = {}
    for target in targets:
        try:
            facts = read_facts(target)
        except OrtLiteError:
            continue  # it is damaged, and names no payload
        for context in facts.contexts:
            if context.payload and not context.problem:
                names = used.setdefault(target.parent / context.payload, set())
                names.add(context.partition_name or context.node)
    replaceable = []
    for path, names in used.items():
        file = open_file(path)
        try:
            if read_container(file.view).entries.keys() <= names:
                replaceable.append(path)
        finally:
            file.close()
    return replaceable


def _remove_payloads(paths: Sequence[Path]) -> None:
    """Remove payload files of context models that were replaced; a note names one in use."""
    for path in paths:
        try:
            remove_file(path)
        except OSError as exc:
            print_note(f"note: {path} is no longer used but cannot be removed: {exc.strerror}")


def _merge_options(choice: SessionChoice, provider_pairs: str, config_pairs: str) -> SessionChoice:
    options = _pairs(provider_pairs, "-i")
    providers = choice.providers
    if options:
        if providers is None or len(providers) != 1:
            raise click.UsageError("-i sets options of one execution provider; name it with -e")
        ((name, named),) = providers
        providers = ((name, {**named, **options}),)
    config = {**choice.config, **_pairs(config_pairs, "-C")}
    if NOT_ALLOWED in config:
        raise click.UsageError(
            f"{NOT_ALLOWED} cannot be set for a group: each model has its own path"
        )
    changed = [key for key, value in FORCED.items() if config.get(key, value) != value]
    if changed:
        raise click.UsageError(f"{changed[0]} is always {FORCED[changed[0]]} for a group")
    return replace(choice, providers=providers, config=config)


def _pairs(text: str, option: str) -> Mapping[str, str]:
    """Parse `key|value key|value`."""
    pairs: dict[str, str] = {}
    for pair in text.split():
        key, bar, value = pair.partition("|")
        if not key or not bar or not value:
            raise click.UsageError(f'{option} "{pair}": expected KEY|VALUE')
        if key in pairs:
            raise click.UsageError(f"{option}: {key} is set twice")
        pairs[key] = value
    return pairs
