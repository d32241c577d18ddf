from __future__ import annotations

import pytest

from ort_lite.ep.kernels import KernelCall, KernelDef, KernelRegistry, kernel
from ort_lite.kernel_type_str import (
    ArgPlace,
    KernelTypeStrResolver,
    OpIdentifier,
    places_of_schema,
)
from ort_lite.status import Fail

ADD_7, ADD_13, ADD_14 = (OpIdentifier("", "Add", version) for version in (7, 13, 14))
IN_0, IN_1 = (ArgPlace(is_input=True, index=i) for i in (0, 1))
OUT_0 = ArgPlace(is_input=False, index=0)
PLACES = {"T": (IN_0, IN_1, OUT_0)}


class Formal:
    def __init__(self, name: str, type_str: str) -> None:
        self.name = name
        self.type_str = type_str


def add(since: tuple[int, int | None], *types: str) -> KernelDef:
    return kernel("Add", since=since, types={"T": types} if types else None)(lambda info: None)


def registry(*definitions: KernelDef) -> KernelRegistry:
    made = KernelRegistry("CPUExecutionProvider")
    for definition in definitions:
        made.register(definition)
    return made


def resolver(*ops: OpIdentifier) -> KernelTypeStrResolver:
    made = KernelTypeStrResolver()
    for op in ops:
        made.add(op, PLACES)
    return made


def call(op: OpIdentifier, *types: str) -> KernelCall:
    return KernelCall(op=op, node_name="n", input_types=types)


def test_an_open_ended_kernel_matches_its_first_version_only() -> None:
    one = add((7, None))
    found = registry(one).lookup(call(ADD_7, "tensor(float)"), resolver(ADD_7))
    assert found is one
    with pytest.raises(Fail, match=r"Version mismatch. node_version: 13 kernel start version: 7 "):
        registry(one).lookup(call(ADD_13, "tensor(float)"), resolver(ADD_13))


def test_a_closed_range_matches_every_version_in_it() -> None:
    one = add((7, 13))
    for op in (ADD_7, ADD_13):
        assert registry(one).lookup(call(op), resolver(op)) is one
    with pytest.raises(Fail, match="kernel_end_version: 13"):
        registry(one).lookup(call(ADD_14), resolver(ADD_14))


def test_an_operator_without_kernels_is_not_found() -> None:
    with pytest.raises(Fail, match="Kernel not found"):
        registry().lookup(call(ADD_7), resolver(ADD_7))


def test_a_type_that_is_not_enabled_is_named_with_those_that_are() -> None:
    made = registry(add((7, 7), "tensor(float)", "tensor(double)"))
    with pytest.raises(Fail) as caught:
        made.lookup(call(ADD_7, "tensor(int64)", "tensor(float)"), resolver(ADD_7))
    assert caught.value.message == (
        "Op with name (n) domain () and type (Add) kernel is not supported in "
        "CPUExecutionProvider. Encountered following errors: (Found kernel in the supported "
        "version range (node_version: 7). However the types are incompatible. This op has been "
        "implemented only for the following types (tensor(double), tensor(float)), but the node "
        "in the model has the following type (tensor(int64)))"
    )


def test_only_the_first_argument_that_exists_is_checked() -> None:
    one = add((7, 7), "tensor(float)")
    looked = registry(one).lookup(call(ADD_7, "", "tensor(float)"), resolver(ADD_7))
    assert looked is one
    looked = registry(one).lookup(call(ADD_7, "tensor(float)", "tensor(int8)"), resolver(ADD_7))
    assert looked is one
    assert registry(one).lookup(call(ADD_7), resolver(ADD_7)) is one


def test_overlapping_kernels_are_refused_at_registration() -> None:
    made = registry(add((7, 13)))
    with pytest.raises(Fail) as caught:
        made.register(add((13, None)))
    assert caught.value.message == (
        "Failed to add kernel for Add ai.onnx CPUExecutionProvider: Conflicting with a registered "
        "kernel with op versions. the since version is: 7-13"
    )


def test_an_open_end_conflicts_with_its_own_version_only() -> None:
    made = registry(add((7, None)))
    made.register(add((8, 13)))
    with pytest.raises(Fail, match=r"the since version is: 7$"):
        made.register(add((6, 7)))


def test_kernels_for_disjoint_types_live_side_by_side() -> None:
    floats, integers = add((7, 7), "tensor(float)"), add((7, 7), "tensor(int32)")
    made = registry(floats, integers)
    assert made.lookup(call(ADD_7, "tensor(int32)"), resolver(ADD_7)) is integers
    with pytest.raises(Fail, match="Conflicting"):
        made.register(add((7, 7), "tensor(float)", "tensor(double)"))


def test_a_range_that_matches_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="Add: versions 9 to 7 match nothing"):
        add((9, 7))


def test_the_registry_lists_operators_and_first_versions() -> None:
    made = registry(add((7, 13)), add((14, None)))
    assert made.operators() == (("", "Add"),)
    assert made.since_versions("", "Add") == (7, 14)
    assert made.since_versions("", "Sub") == ()


def test_an_op_identifier_is_read_back_from_its_text() -> None:
    assert str(ADD_14) == ":Add:14"
    assert OpIdentifier.parse("com.microsoft:Gelu:1") == OpIdentifier("com.microsoft", "Gelu", 1)


@pytest.mark.parametrize("text", ["Add", ":Add", ":Add:x", "a:b:c:1", ":Add:-1"])
def test_a_wrong_op_identifier_is_refused(text: str) -> None:
    with pytest.raises(Fail, match="expected three components"):
        OpIdentifier.parse(text)


def test_type_strings_resolve_to_constraints_and_parameter_names() -> None:
    inputs = [Formal("X", "T"), Formal("shape", "tensor(int64)")]
    outputs = [Formal("Y", "T")]
    assert places_of_schema(inputs, outputs, frozenset({"T"})) == {
        "T": (IN_0, OUT_0),
        "shape": (IN_1,),
    }


def test_one_name_for_two_types_is_refused() -> None:
    inputs, outputs = [Formal("A", "tensor(int64)")], [Formal("A", "tensor(float)")]
    with pytest.raises(Fail, match="already exists for formal parameter name 'A'"):
        places_of_schema(inputs, outputs, frozenset())


def test_a_resolver_refuses_what_it_does_not_know() -> None:
    made = resolver(ADD_7)
    with pytest.raises(Fail, match="Failed to find op_id: :Add:13"):
        made.resolve(ADD_13, "T")
    with pytest.raises(Fail, match="kernel type string 'T9' for node type 'Add'"):
        made.resolve(ADD_7, "T9")


def test_a_resolver_takes_an_operator_twice_only_if_it_is_the_same() -> None:
    made = resolver(ADD_7)
    made.add(ADD_7, PLACES)
    with pytest.raises(Fail, match="Duplicate entry for op id: :Add:7"):
        made.add(ADD_7, {})
