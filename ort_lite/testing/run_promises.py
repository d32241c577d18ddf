"""Promises about compile and run: right numbers, owned results, many threads, clean release."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ort_lite.ep.interface import (
    CompileRefused,
    ExecutionProvider,
    FusedNode,
    SupportsCompileByShape,
)
from ort_lite.status import OrtLiteError
from ort_lite.testing.oracle_cases import (
    CASE_NAMES,
    OracleCase,
    contradictory_case,
    oracle_case,
)
from ort_lite.testing.subject import EpUnderTest, arguments, ask, compile_one

if TYPE_CHECKING:
    from ort_lite.ep.interface import CompiledPartition
    from ort_lite.model.graph import Graph

    Array = np.ndarray[Any, np.dtype[Any]]

THREADS = 8
RUNS_EACH = 12


class RunPromises(EpUnderTest):
    """Promises that the executor relies on."""

    def compile_whole(self, ep: ExecutionProvider, graph: Graph) -> CompiledPartition:
        """`graph` as one partition, or a skip with the EP's reasons."""
        refused = dict(ask(ep, graph).refused)
        if refused:
            pytest.skip(f"{ep.name} does not take all of it: {refused}")
        try:
            return compile_one(ep, graph)
        except CompileRefused as exc:
            pytest.skip(f"{ep.name} does not compile it: {exc.message}")

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_a_partition_gives_the_numbers_of_the_reference(
        self, ep: ExecutionProvider, name: str
    ) -> None:
        """Twice for each feed: a second run sees nothing of the first."""
        case = oracle_case(name)
        graph = case.graph()
        compiled = self.compile_whole(ep, graph)
        for feed in (*case.feeds, *case.feeds):
            self.assert_close(
                compiled.run(arguments(graph, feed)), case.expected_partition_outputs(graph, feed)
            )
        compiled.release()

    @pytest.mark.parametrize("name", CASE_NAMES)
    @pytest.mark.usefixtures("ep")
    def test_a_session_gives_the_numbers_of_the_reference(self, name: str) -> None:
        """Whatever the EP takes and whatever falls to the CPU EP."""
        case = oracle_case(name)
        with self.session(case.encode()) as session:
            for feed in case.feeds:
                self.assert_close(session.run(None, dict(feed)), case.expected_outputs(feed))

    def test_several_partitions_are_compiled_in_the_order_given(
        self, ep: ExecutionProvider
    ) -> None:
        """One call for many: the result has one entry per partition, each for its own graph."""
        fitting = (case for case in map(oracle_case, CASE_NAMES) if self.takes(ep, case))
        cases = list(islice(fitting, 3))
        graphs = [case.graph() for case in cases]
        compiled = ep.compile([FusedNode(name=graph.name, graph=graph) for graph in graphs])
        assert len(compiled) == len(graphs)
        for case, graph, partition in zip(cases, graphs, compiled, strict=True):
            feed = case.feeds[0]
            self.assert_close(
                partition.run(arguments(graph, feed)), case.expected_partition_outputs(graph, feed)
            )
            partition.release()

    def test_what_is_made_ready_for_shapes_is_ready(self, ep: ExecutionProvider) -> None:
        """Of a partition that compiles by shape: a run with these shapes then compiles nothing."""
        case = oracle_case("dynamic")
        graph = case.graph()
        compiled = self.compile_whole(ep, graph)
        if not isinstance(compiled, SupportsCompileByShape):
            compiled.release()
            pytest.skip(f"{ep.name} compiles for all shapes at once")
        for feed in case.feeds:
            inputs = arguments(graph, feed)
            shapes = tuple(value.shape for value in inputs)
            compiled.get_ready(shapes)
            assert compiled.is_ready(shapes)
            self.assert_close(compiled.run(inputs), case.expected_partition_outputs(graph, feed))
            assert not compiled.is_ready(tuple((*shape, 1) for shape in shapes))
        compiled.release()

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_results_own_their_memory(self, ep: ExecutionProvider, name: str) -> None:
        """Not the inputs', not each other's, not a constant's, not the next run's."""
        case = oracle_case(name)
        graph = case.graph()
        compiled = self.compile_whole(ep, graph)
        feed, other = case.feeds[:2]
        inputs = arguments(graph, feed)
        first = list(compiled.run(inputs))
        kept = [np.array(value) for value in first]
        for i, result in enumerate(first):
            for held in (*inputs, *first[:i]):
                assert not np.shares_memory(result, held)
            assert result.flags.writeable
        compiled.run(arguments(graph, other))
        for result, copy in zip(first, kept, strict=True):
            np.testing.assert_array_equal(result, copy)
            result[...] = 1
        for again, copy in zip(compiled.run(inputs), kept, strict=True):
            np.testing.assert_array_equal(again, copy)
        compiled.release()
        for result in first:
            np.testing.assert_array_equal(result, np.ones_like(result))

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_inputs_are_not_written_to(self, ep: ExecutionProvider, name: str) -> None:
        """Read-only arrays are taken, and writable ones are left as they are."""
        case = oracle_case(name)
        graph = case.graph()
        compiled = self.compile_whole(ep, graph)
        for writable in (True, False):
            inputs = [np.array(value) for value in arguments(graph, case.feeds[0])]
            for value in inputs:
                value.flags.writeable = writable
            compiled.run(inputs)
            for value, original in zip(inputs, arguments(graph, case.feeds[0]), strict=True):
                np.testing.assert_array_equal(value, original)
        compiled.release()

    def test_many_threads_run_one_partition_at_once(
        self, ep: ExecutionProvider, taken: OracleCase
    ) -> None:
        """Each thread gets the results of its own inputs, every time."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        random = np.random.default_rng(5)
        jobs = [
            {
                key: np.asarray(value + random.integers(1, 9), value.dtype)
                for key, value in f.items()
            }
            for f in (taken.feeds[0],) * THREADS
        ]
        start = threading.Barrier(THREADS)

        def run(feed: dict[str, Array]) -> list[list[Array]]:
            start.wait()
            return [list(compiled.run(arguments(graph, feed))) for _ in range(RUNS_EACH)]

        with ThreadPoolExecutor(THREADS) as pool:
            outputs = list(pool.map(run, jobs))
        for feed, runs in zip(jobs, outputs, strict=True):
            expected = taken.expected_partition_outputs(graph, feed)
            for results in runs:
                self.assert_close(results, expected)
        compiled.release()

    def test_a_run_that_fails_is_an_error_of_ours_and_the_next_one_works(
        self, ep: ExecutionProvider
    ) -> None:
        """Shapes that no declared type forbids, and that the operator cannot broadcast."""
        case = contradictory_case()
        graph = case.graph()
        compiled = self.compile_whole(ep, graph)
        wrong, right = case.feeds
        for _ in range(2):
            with pytest.raises(OrtLiteError):
                compiled.run(arguments(graph, wrong))
            self.assert_close(
                compiled.run(arguments(graph, right)), case.expected_partition_outputs(graph, right)
            )
        compiled.release()

    def test_two_instances_live_side_by_side(
        self, ep: ExecutionProvider, taken: OracleCase
    ) -> None:
        """Releasing one, and what it compiled, does not reach the other."""
        graph, feed = taken.graph(), taken.feeds[0]
        other = self.open()
        mine, theirs = compile_one(ep, graph), compile_one(other, graph)
        expected = taken.expected_partition_outputs(graph, feed)
        self.assert_close(mine.run(arguments(graph, feed)), expected)
        theirs.release()
        other.release()
        self.assert_close(mine.run(arguments(graph, feed)), expected)
        late = compile_one(ep, graph)
        mine.release()
        self.assert_close(late.run(arguments(graph, feed)), expected)
        late.release()

    def test_a_released_partition_is_refused_cleanly(
        self, ep: ExecutionProvider, taken: OracleCase
    ) -> None:
        """An error of ours, not a crash and not numbers."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        compiled.run(arguments(graph, taken.feeds[0]))
        compiled.release()
        with pytest.raises(OrtLiteError, match="released"):
            compiled.run(arguments(graph, taken.feeds[0]))

    def test_a_partition_is_released_twice_without_harm(
        self, ep: ExecutionProvider, taken: OracleCase
    ) -> None:
        """Clean-up after an error may pass the same partition again."""
        compiled = compile_one(ep, taken.graph())
        compiled.release()
        compiled.release()
