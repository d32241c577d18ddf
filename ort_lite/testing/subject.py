"""The EP under test: how it is opened, compiled for, and put into a session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from ort_lite.ep.interface import (
    CompiledPartition,
    CompileRefused,
    ExecutionProvider,
    FusedNode,
    GraphView,
    SupportsEpContext,
)
from ort_lite.options import SessionOptions
from ort_lite.providers import catalog
from ort_lite.session import InferenceSession
from ort_lite.testing.oracle_cases import CASE_NAMES, OracleCase, oracle_case

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from ort_lite.ep.factory import EpFactory
    from ort_lite.ep.interface import Capability
    from ort_lite.model.graph import Graph

    Array = np.ndarray[Any, np.dtype[Any]]

DOUBLE_RTOL = 1e-12
"""For float64: far below what arithmetic in float32 could reach."""


class EpUnderTest(ABC):
    """The description of an EP by its author, and the fixtures derived from it.

    Attributes:
        provider_options: With which the EP is opened.
        sdk_modules: Top-level packages of the vendor's SDK, e.g. ("openvino",).
        rtol: Allowed relative difference from the ONNX reference for float32; integers
            and bools must be equal, float64 within 1e-12.
        atol: Allowed absolute difference for float32.
        known_failures: Test name, with its parameters if it has any, to the reason why it
            fails. Such a test is expected to fail, and an error once it passes.
    """

    provider_options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    sdk_modules: ClassVar[tuple[str, ...]] = ()
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-6
    known_failures: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @property
    @abstractmethod
    def factory(self) -> EpFactory:
        """The object that the distribution's entry point names."""

    @pytest.fixture(autouse=True)
    def _expect_known_failures(self, request: pytest.FixtureRequest) -> None:
        reason = self.known_failures.get(request.node.name)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    @pytest.fixture
    def ep(self) -> Iterator[ExecutionProvider]:
        """The EP, opened; a machine without its device skips, and says what is missing."""
        probe = self.factory.probe()
        if not probe.devices:
            pytest.skip(f"{self.factory.name}: {probe.reason}")
        opened = self.open()
        yield opened
        opened.release()

    @pytest.fixture
    def context_ep(self, ep: ExecutionProvider) -> SupportsEpContext:
        """The EP as one that keeps contexts; an EP that does not has no such promise."""
        if not isinstance(ep, SupportsEpContext):
            pytest.skip(f"{ep.name} keeps no contexts: it has no export_model and import_model")
        return ep

    @pytest.fixture
    def taken(self, ep: ExecutionProvider) -> OracleCase:
        """A graph that the EP compiles as a whole, with weights if it accepts such a graph."""
        cases = sorted(map(oracle_case, CASE_NAMES), key=lambda case: not case.has_weights)
        fitting = next((case for case in cases if self.takes(ep, case)), None)
        assert fitting is not None, f"{ep.name} compiles none of the graphs {CASE_NAMES}"
        return fitting

    def open(self) -> ExecutionProvider:
        """A new instance with `provider_options`."""
        return catalog.open_provider(self.entry(), self.provider_options)

    def entry(self) -> catalog.ProviderEntry:
        """The installed entry point."""
        installed = catalog.entries()
        assert self.factory.name in installed, (
            f"'{self.factory.name}' is not installed: its distribution needs an entry point of "
            f"that name in the group {catalog.GROUP}. Installed: {list(installed)}"
        )
        return installed[self.factory.name]

    def session(
        self,
        model: bytes | str | os.PathLike[str],
        entries: Mapping[str, str] | None = None,
    ) -> InferenceSession:
        """A session in which the EP gets all that it supports; `entries` configure it."""
        options = SessionOptions()
        options.add_session_config_entry("session.placement", "all")
        for key, value in (entries or {}).items():
            options.add_session_config_entry(key, value)
        named = [(self.factory.name, self.provider_options)]
        return InferenceSession(model, options, providers=named, enable_fallback=0)

    def takes(self, ep: ExecutionProvider, case: OracleCase) -> bool:
        """Whether the EP compiles every node of a graph in one partition."""
        graph = case.graph()
        if len(ask(ep, graph).supported) < len(graph.nodes):
            return False
        try:
            compile_one(ep, graph).release()
        except CompileRefused:
            return False
        return True

    def assert_close(self, actual: Sequence[Array], expected: Sequence[Array]) -> None:
        """Compare results with the reference's: number, types, shapes, values."""
        assert len(actual) == len(expected)
        for mine, right in zip(actual, expected, strict=True):
            assert isinstance(mine, np.ndarray)
            assert mine.dtype == right.dtype
            assert mine.shape == right.shape
            if right.dtype.kind in "biu":
                np.testing.assert_array_equal(mine, right)
            elif right.dtype == np.float64:
                np.testing.assert_allclose(mine, right, rtol=DOUBLE_RTOL)
            else:
                np.testing.assert_allclose(mine, right, rtol=self.rtol, atol=self.atol)


def ask(ep: ExecutionProvider, graph: Graph) -> Capability:
    """The EP's answer on every node."""
    return ep.get_capability(GraphView(graph, frozenset(range(len(graph.nodes)))))


def compile_one(ep: ExecutionProvider, graph: Graph) -> CompiledPartition:
    """A graph compiled as one partition."""
    (compiled,) = ep.compile([FusedNode(name=f"{ep.name}_{graph.name}_0", graph=graph)])
    return compiled


def arguments(graph: Graph, feed: Mapping[str, Array]) -> list[Array]:
    """The values of a feed in the order in which the partition takes them."""
    return [feed[info.name] for info in graph.inputs]
