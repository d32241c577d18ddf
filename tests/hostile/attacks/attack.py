"""One hostile case, and the engine that it is tried on."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ENGINES = {
    "onnxruntime": ("onnxruntime", "CPUExecutionProvider"),
    "cpu": ("ort_lite", "CPUExecutionProvider"),
    "openvino": ("ort_lite", "OpenVINOExecutionProvider"),
    "opencl": ("ort_lite", "OpenCLExecutionProvider"),
}
"""Name of an engine to its package, and the provider that comes first."""


class WrongAnswerError(Exception):
    """The engine computed something else than is right, or accepted what it had to refuse."""


@dataclass(frozen=True)
class Attack:
    """A case.

    Attributes:
        name: `group: what`.
        run: Returns if the answer is right, raises WrongAnswerError if it is not.
        alone: Whether it needs a process of its own, since it changes the process.
        engines: That have what it attacks.
    """

    name: str
    run: Callable[[Engine], object]
    alone: bool = False
    engines: tuple[str, ...] = tuple(ENGINES)


OURS = tuple(name for name in ENGINES if name != "onnxruntime")
ATTACKS: dict[str, Attack] = {}


def attack(
    name: str, *, alone: bool = False, engines: tuple[str, ...] = tuple(ENGINES)
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Register a function as the case `name`."""

    def register(run: Callable[..., object]) -> Callable[..., object]:
        add(name, run, alone=alone, engines=engines)
        return run

    return register


def add(
    name: str,
    run: Callable[[Engine], object],
    *,
    alone: bool = False,
    engines: tuple[str, ...] = tuple(ENGINES),
) -> None:
    """Register a case."""
    assert name not in ATTACKS, name
    ATTACKS[name] = Attack(name, run, alone, engines)


class Engine:
    """onnxruntime, or ort_lite with one provider first."""

    def __init__(self, name: str, folder: Path) -> None:
        package, self.provider = ENGINES[name]
        self.name = name
        self.folder = folder
        self.is_ours = package == "ort_lite"
        self.ort: Any = importlib.import_module(package)

    def options(self, **config: str) -> Any:
        """Session options; `__` in a name stands for a dot."""
        made = self.ort.SessionOptions()
        made.log_severity_level = 4
        for key, value in config.items():
            made.add_session_config_entry(key.replace("__", "."), value)
        return made

    def session(self, model: object, options: Any = None, **config: str) -> Any:
        """A session on the engine's provider and the CPU EP, without any other to fall back to."""
        given = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        return self.ort.InferenceSession(
            given, options or self.options(**config), providers=[self.provider], enable_fallback=0
        )

    def check(
        self,
        model: object,
        feed: Mapping[str, Any],
        expected: object,
        options: Any = None,
    ) -> None:
        """Run a model and compare its first output; `expected` None means that it must fail."""
        session = self.session(model, options)
        found = [*session.run(None, feed), "no output"][0]
        self.compare(found, expected)
        if self.is_ours:
            session.close()

    def compare(self, found: Any, expected: object) -> None:
        if expected is None:
            raise WrongAnswerError(f"accepted, and computed {np.asarray(found).reshape(-1)[:4]}")
        wanted = np.asarray(expected)
        if np.asarray(found).shape != wanted.shape:
            raise WrongAnswerError(f"shape {np.asarray(found).shape}, not {wanted.shape}")
        if not np.allclose(found, wanted, rtol=1e-4, atol=1e-5, equal_nan=True):
            raise WrongAnswerError(
                f"{np.asarray(found).reshape(-1)[:4]}, not {wanted.reshape(-1)[:4]}"
            )


def must_fail(call: Callable[[], object], why: str = "") -> None:
    """Call it; WrongAnswerError if it is accepted."""
    result = call()
    raise WrongAnswerError(f"accepted{': ' if why else ''}{why} ({result!r})"[:200])
