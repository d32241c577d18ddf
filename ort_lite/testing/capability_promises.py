"""Promises about get_capability: complete, honest, the same every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctx_formats.onnx_model import DataType, GraphDef, Node, TensorType, ValueInfo
from ort_lite.ep.interface import ExecutionProvider, GraphView
from ort_lite.model.graph import Graph
from ort_lite.testing.oracle_cases import CASE_NAMES, oracle_case
from ort_lite.testing.subject import EpUnderTest, arguments, ask, compile_one

if TYPE_CHECKING:
    from collections.abc import Sequence


class CapabilityPromises(EpUnderTest):
    """Promises that the partitioner relies on."""

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_every_candidate_is_supported_or_refused_with_a_reason(
        self, ep: ExecutionProvider, name: str
    ) -> None:
        """No node is left without an answer, none gets two, a reason is one line."""
        graph = oracle_case(name).graph()
        answer = ask(ep, graph)
        assert answer.supported | answer.refused.keys() == set(range(len(graph.nodes)))
        assert not answer.supported & answer.refused.keys()
        for reason in answer.refused.values():
            assert reason.strip()
            assert "\n" not in reason

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_only_candidates_are_answered(self, ep: ExecutionProvider, name: str) -> None:
        """A node that another EP has taken is not claimed again."""
        graph = oracle_case(name).graph()
        whole = ask(ep, graph).supported
        for index in range(len(graph.nodes)):
            answer = ep.get_capability(GraphView(graph, frozenset((index,))))
            assert answer.supported | answer.refused.keys() == {index}
            assert answer.supported <= whole, "refused with its neighbours, claimed without"
        nothing = ep.get_capability(GraphView(graph, frozenset()))
        assert not nothing.supported
        assert not nothing.refused

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_the_answer_is_the_same_every_time(self, ep: ExecutionProvider, name: str) -> None:
        """Asked again, of another instance, for another copy of the graph."""
        other = self.open()
        answers = [ask(one, oracle_case(name).graph()) for one in (ep, ep, other)]
        other.release()
        assert len({answer.supported for answer in answers}) == 1
        assert all(dict(answer.refused) == dict(answers[0].refused) for answer in answers)

    @pytest.mark.parametrize("name", CASE_NAMES)
    def test_every_node_it_claims_runs_alone(self, ep: ExecutionProvider, name: str) -> None:
        """Another EP may take the neighbours; the node still gives the reference's numbers."""
        case = oracle_case(name)
        graph = case.graph()
        claimed = ask(ep, graph).supported
        if not claimed:
            pytest.skip(f"{ep.name} accepts no node of it: {dict(ask(ep, graph).refused)}")
        for index in sorted(claimed):
            part = graph.extract((index,), f"{name}_{index}")
            compiled = compile_one(ep, part)
            for feed in case.feeds:
                names = [info.name for info in (*part.inputs, *part.outputs)]
                values = dict(zip(names, case.expected_outputs(feed, names), strict=True))
                expected = [values[info.name] for info in part.outputs]
                self.assert_close(compiled.run(arguments(part, values)), expected)
            compiled.release()

    @pytest.mark.parametrize(
        ("op_type", "domain"),
        [("NoSuchOperator", ""), ("Relu", "com.example"), ("EPContext", "com.microsoft")],
    )
    def test_an_operator_that_it_cannot_know_is_refused(
        self, ep: ExecutionProvider, op_type: str, domain: str
    ) -> None:
        """A name alone does not make an operator: its domain belongs to it."""
        answer = ask(ep, _lone_node(op_type, domain))
        assert not answer.supported
        assert answer.refused[0].strip()

    def test_it_compiles_something(self, ep: ExecutionProvider) -> None:
        """An EP that refuses every graph would pass the rest."""
        assert any(self.takes(ep, oracle_case(name)) for name in CASE_NAMES)


def _lone_node(op_type: str, domain: str) -> Graph:
    """One node from x to y, both float32 [2]."""
    infos: Sequence[ValueInfo] = [
        ValueInfo(name, TensorType(DataType.FLOAT, (2,))) for name in ("x", "y")
    ]
    definition = GraphDef(
        name="lone",
        nodes=(Node(op_type, ("x",), ("y",), name="lone", domain=domain),),
        inputs=(infos[0],),
        outputs=(infos[1],),
    )
    return Graph(definition, {"": 17, "com.example": 1, "com.microsoft": 1})
