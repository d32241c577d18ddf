"""Execution providers as one writes them in a variable of the environment.

openvino,cpu                                        names, short or full
openvino:device_type=CPU,num_of_threads=2;cpu       with options; `;` between providers
[["openvino", {"device_type": "AUTO:GPU,CPU"}]]     JSON, for values with commas in them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ort_lite.providers.catalog import entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Providers = tuple[tuple[str, Mapping[str, str]], ...]

SUFFIX = "ExecutionProvider"


def providers_of(
    chosen: str | Sequence[str | tuple[str, Mapping[str, str]]], origin: str
) -> Providers:
    """Providers from a text or from a sequence as sessions get it.

    Raises:
        ValueError: As `parse_providers` and `provider_list`.
    """
    return (
        parse_providers(chosen, origin)
        if isinstance(chosen, str)
        else provider_list(chosen, origin)
    )


def parse_providers(text: str, origin: str) -> Providers:
    """The providers that `text` names, by their full names.

    Args:
        text: As in the module's docstring.
        origin: The variable or option that it comes from, for errors.

    Raises:
        ValueError: It cannot be read; says where and what is expected.
    """
    if text.lstrip().startswith("["):
        return provider_list(_from_json(text, origin), origin)
    separator = ";" if ":" in text or ";" in text else ","
    parts = [part.strip() for part in text.split(separator)]
    return provider_list([_entry(part, origin) for part in parts if part], origin)


def provider_list(
    providers: Sequence[str | tuple[str, Mapping[str, str]]], origin: str
) -> Providers:
    """`providers` with full names, and a mapping of texts for each.

    Raises:
        ValueError: An entry is neither a name nor a pair, names nothing installed, or comes twice.
    """
    options_of: dict[str, Mapping[str, str]] = {}
    for entry in providers:
        name, options = (entry, {}) if isinstance(entry, str) else _pair(entry, origin)
        full = full_name(name, origin)
        if full in options_of:
            raise ValueError(f"{origin}: {full} is named twice")
        options_of[full] = {str(key): str(value) for key, value in options.items()}
    if not options_of:
        raise ValueError(f"{origin}: no execution provider is named")
    return tuple(options_of.items())


def full_name(name: str, origin: str) -> str:
    """The installed execution provider that `name` means: openvino is OpenVINOExecutionProvider.

    Raises:
        ValueError: None is; lists those installed.
    """
    installed = list(entries())
    for known in installed:
        if name.lower() in (known.lower(), known.removesuffix(SUFFIX).lower()):
            return known
    raise ValueError(
        f"{origin}: no execution provider {name!r} is installed; expected one of "
        f'{", ".join(installed)}. pip install "ort-lite[all]" installs those of ort_lite'
    )


def _from_json(text: str, origin: str) -> list[Any]:
    import json  # noqa: PLC0415 - lazy: reload

    try:
        providers = json.loads(text)
    except json.JSONDecodeError as exc:
        raise ValueError(f"{origin} begins with [ but is not JSON: {exc}") from exc
    return list(providers)


def _pair(entry: object, origin: str) -> tuple[str, Mapping[str, str]]:
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        name, options = entry
        if isinstance(name, str) and isinstance(options, dict):
            return name, options
    raise ValueError(f"{origin}: expected a name or [name, {{options}}], not {entry!r}")


def _entry(part: str, origin: str) -> tuple[str, Mapping[str, str]]:
    name, _, rest = part.partition(":")
    options: dict[str, str] = {}
    for item in rest.split(",") if rest.strip() else ():
        key, sign, value = item.partition("=")
        if not sign or not key.strip():
            raise ValueError(
                f"{origin}: {item.strip()!r} after {name!r} is not a KEY=VALUE. Providers with "
                "options are separated by ';', options by ','; where a value has a comma write "
                'JSON: [["openvino", {"device_type": "AUTO:GPU,CPU"}], "cpu"]'
            )
        options[key.strip()] = value.strip()
    return name.strip(), options
