"""Options of one run, with ONNX Runtime's names and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.attribute_values import check_entry, convert_value
from ort_lite.options import MAX_KEY_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.execution.adapters import LoraAdapter


_KINDS: dict[str, type] = {
    **dict.fromkeys(("log_severity_level", "log_verbosity_level"), int),
    **dict.fromkeys(("only_execute_path_to_fetches", "terminate"), bool),
    "logid": str,
}


@dataclass(slots=True, eq=False)
class RunOptions:
    """Options of one call of `run`."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    _adapters: list[LoraAdapter | None] = field(default_factory=list, repr=False)
    _config: dict[str, str] = field(default_factory=dict, repr=False)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; a value of another type than its own is a TypeError."""
        kind = _KINDS.get(name, type(value))
        object.__setattr__(self, name, convert_value("RunOptions", name, value, kind))

    def add_active_adapter(self, adapter: LoraAdapter | None) -> None:
        """Feed the parameters of a LoRA adapter to `run` and `run_with_ort_values`.

        Raises:
            TypeError: `adapter` is none; None is, and has no parameters.
        """
        from ort_lite.execution.adapters import LoraAdapter  # noqa: PLC0415 - lazy: rare

        any_adapter: object = adapter
        if any_adapter is not None and not isinstance(any_adapter, LoraAdapter):
            raise TypeError(f"an adapter is a LoraAdapter, got {any_adapter!r}")
        self._adapters.append(adapter)

    @property
    def active_adapters(self) -> Sequence[LoraAdapter | None]:
        """Those added, in order."""
        return self._adapters

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry of this run.

        Raises:
            RuntimeError: The key is empty or over 1,024 characters; onnxruntime's class.
            TypeError: One of them is not text.
        """
        check_entry(key, value, MAX_KEY_LENGTH)
        self._config[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value of an entry; RuntimeError if it is not set."""
        if key not in self._config:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]
