"""Promises of the factory: found by name, checked options, lean to import, honest to probe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ort_lite.ep.factory import SupportsUnknownOptions
from ort_lite.ep.interface import ExecutionProvider, SupportsEpContext
from ort_lite.session import InferenceSession
from ort_lite.status import InvalidArgument
from ort_lite.testing.oracle_cases import oracle_case
from ort_lite.testing.subject import EpUnderTest

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("CPU", "GPU", "NPU", "ACCELERATOR")

_CHILD = """
import json, sys
hidden = set(json.loads(sys.argv[2]))

class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        found = name.partition(".")[0] in hidden
        return None if found else self.finder.find_spec(name, path, target)
    def invalidate_caches(self):
        pass
    def __getattr__(self, name):  # find_distributions: some SDKs ask for their own version
        return getattr(self.finder, name)

sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]

from importlib import import_module
module, _, attribute = sys.argv[1].partition(":")
factory = getattr(import_module(module), attribute)
told = {"at_import": sorted(sys.modules)}
from ort_lite.ep.factory import SupportsMissingReason
told["missing"] = factory.missing() if isinstance(factory, SupportsMissingReason) else None
told["at_missing"] = sorted(sys.modules)
probe = factory.probe()
told["devices"] = [device.name for device in probe.devices]
told["reason"] = probe.reason
told["at_probe"] = sorted(sys.modules)
try:
    factory.create({})
    told["create"] = ""
except Exception as exc:
    told["create"] = f"{type(exc).__name__}: {exc}"
print(json.dumps(told))
"""
"""Imports and probes a factory where the modules in argv[2] are not installed."""


class FactoryPromises(EpUnderTest):
    """Promises that the catalog and the command line rely on."""

    def test_it_is_installed_under_its_name(self) -> None:
        """The entry point leads to the factory under test."""
        assert self.entry().load() is self.factory

    def test_names_agree(self, ep: ExecutionProvider) -> None:
        """Of the factory, the EP and so the `source` of its EPContext nodes."""
        assert ep.name == self.factory.name

    def test_every_device_is_described(self) -> None:
        """Or the probe says why there is none."""
        probe = self.factory.probe()
        assert probe.devices or probe.reason
        for device in probe.devices:
            assert device.kind in KINDS
            assert device.name
            assert device.description
        assert len({device.name for device in probe.devices}) == len(probe.devices)

    def test_every_option_has_a_line_of_help(self) -> None:
        """`ort-lite devices` shows it."""
        for key, text in self.factory.options.items():
            assert key
            assert text.strip()
            assert "\n" not in text

    def test_an_unknown_option_is_refused_with_the_known_ones(self) -> None:
        """A misspelt option never passes unnoticed, unless the factory ignores them all."""
        if isinstance(self.factory, SupportsUnknownOptions) and self.factory.ignores_options:
            self.factory.create({"no_such_option": "1"}).release()
            return
        providers = [(self.factory.name, {"no_such_option": "1"})]
        with pytest.raises(InvalidArgument, match="no_such_option") as refusal:
            InferenceSession(oracle_case("elementwise").encode(), providers=providers)
        for known in self.factory.options:
            assert known in refusal.value.message

    def test_importing_the_factory_imports_no_sdk(self) -> None:
        """`import` is paid by every program, whether it uses the EP or not."""
        self._skip_without_sdk()
        report = self._in_a_fresh_process(hidden=())
        loaded = {str(name).partition(".")[0] for name in _as_list(report["at_import"])}
        assert not loaded & {*self.sdk_modules, "onnx"}

    def test_without_its_sdk_it_says_so(self) -> None:
        """The probe gives a reason and no device, `create` an error, and neither an import."""
        self._skip_without_sdk()
        report = self._in_a_fresh_process(hidden=self.sdk_modules)
        assert report["devices"] == []
        assert report["reason"]
        assert str(report["create"]).startswith(("EPFail: ", "NotInstalled: "))
        if report["missing"] is not None:  # get_available_providers goes by it
            assert report["missing"]
            assert str(report["create"]).startswith("NotInstalled: ")
            assert not set(map(str, _as_list(report["at_missing"]))) & set(self.sdk_modules)
        loaded = {str(name).partition(".")[0] for name in _as_list(report["at_probe"])}
        assert not loaded & set(self.sdk_modules)

    def test_it_is_released_twice_without_harm(self, ep: ExecutionProvider) -> None:
        """A session that failed half-way closes what it has, then its owner closes it."""
        ep.release()
        ep.release()

    def test_an_ep_keeps_contexts_wholly_or_not_at_all(self, ep: ExecutionProvider) -> None:
        """Half of the interface would be found out when a context model is loaded."""
        methods = ("export_model", "import_model", "check_compatibility", "compatibility_info")
        present = [name for name in methods if hasattr(ep, name)]
        assert isinstance(ep, SupportsEpContext) or not present

    def _skip_without_sdk(self) -> None:
        if not self.sdk_modules:
            pytest.skip(f"{self.factory.name} names no SDK (sdk_modules is empty)")

    def _in_a_fresh_process(self, hidden: tuple[str, ...]) -> Mapping[str, object]:
        arguments = [self.entry().target, json.dumps(hidden)]
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, object] = json.loads(done.stdout)
        return report


def _as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
