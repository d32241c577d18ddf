"""The failure table: whatever is wrong with a payload, the answer is INVALID_GRAPH with a reason.

ONNX Runtime's execution providers answer the same rows with FAIL, EP_FAIL, a warning, or by
loading (QNN, OpenVINO and TensorRT differ from each other); here every EP answers alike.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ort_lite.check import check_compatibility
from ort_lite.options import SessionOptions
from ort_lite.status import InvalidGraph
from ort_lite.testing.context_file import ContextFile, flip_bit, payload_middle, remove_digests
from ort_lite.testing.context_promises import FOREIGN
from ort_lite.testing.reload_promises import EMBED, ReloadPromises

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ort_lite.session import InferenceSession
    from ort_lite.testing.oracle_cases import OracleCase

SOURCE = pytest.mark.parametrize("from_bytes", [False, True], ids=["path", "bytes"])
EXTERNAL = (False,)
BOTH = (False, True)


@dataclass(frozen=True, slots=True)
class Failure:
    """A row of the table.

    Attributes:
        spoil: Brings it about.
        reasons: Any of which says so.
        embedded: The forms in which it can happen.
        by_vendor: Whether only the vendor's import can find it, and a check without a
            session therefore does not.
    """

    name: str
    spoil: Callable[[ContextFile], None]
    reasons: tuple[str, ...]
    embedded: tuple[bool, ...] = BOTH
    by_vendor: bool = False


def node(**changes: Any) -> Callable[[ContextFile], None]:  # noqa: ANN401 - any attribute's value
    """The node's attributes edited."""
    return lambda made: made.edit(lambda context_node: replace(context_node, **changes))


def make_symlink(path: Path, target: Path) -> None:
    """Create a symlink, or skip the test where this system or user cannot."""
    with suppress(OSError):  # Windows without the privilege
        path.symlink_to(target)
    if not path.is_symlink():  # Wine creates nothing, and reports success
        pytest.skip("Windows lets only privileged users create symlinks, and Wine creates none")


def name_other_file(name: str) -> Callable[[ContextFile], None]:
    """The node made to name another file, which is there."""

    def spoil(made: ContextFile) -> None:
        assert made.payload is not None
        folder = made.path.parent
        made.payload.rename(folder.parent / "outside.bin")
        if name == LINK:
            make_symlink(folder / LINK, folder.parent / "outside.bin")
        (folder / "folder.bin").mkdir()
        made.edit(lambda context_node: replace(context_node, ep_cache_context=name.encode()))

    return spoil


def container(change: Callable[[bytes], bytes]) -> Callable[[ContextFile], None]:
    """The payload container changed."""
    return lambda made: made.put_container(change(made.container()))


def replace_foreign_payload(change: Callable[[bytes], bytes]) -> Callable[[ContextFile], None]:
    """The payload of a producer without digests, changed: the EP itself must refuse it."""

    def spoil(made: ContextFile) -> None:
        made.put_container(remove_digests(made.container(), change))
        made.edit(lambda context_node: replace(context_node, notes=""))

    return spoil


def lose(made: ContextFile) -> None:
    """The payload file removed."""
    assert made.payload is not None
    made.payload.unlink()


LINK = "link.bin"
VENDOR = ("vendor_rejected", "format", "shape", "sdk_version", "hardware_architecture")
ROWS = (
    Failure("no path", node(ep_cache_context=b"", main_context=False), ("missing_payload",)),
    Failure("absolute path", name_other_file("/etc/passwd"), ("unsafe_path",), EXTERNAL),
    Failure("path of Windows", name_other_file("C:\\payload.bin"), ("unsafe_path",), EXTERNAL),
    Failure("path upwards", name_other_file("../outside.bin"), ("unsafe_path",), EXTERNAL),
    Failure("symlink outwards", name_other_file(LINK), ("unsafe_path",), EXTERNAL),
    Failure("a folder", name_other_file("folder.bin"), ("unsafe_path",), EXTERNAL),
    Failure("missing file", lose, ("missing_payload",), EXTERNAL),
    Failure("missing partition", node(partition_name="other"), ("missing_payload",)),
    Failure("empty file", container(lambda _: b""), ("format",), EXTERNAL),
    Failure("no container", container(lambda _: b"engine"), ("format",)),
    Failure("cut", container(lambda data: data[: len(data) // 2]), ("format",)),
    Failure(
        "corrupt", container(lambda data: flip_bit(data, payload_middle(data))), ("integrity",)
    ),
    Failure("other version", node(ep_sdk_version=FOREIGN), ("sdk_version",)),
    Failure("other chip", node(hardware_architecture=FOREIGN), ("hardware_architecture",)),
    Failure("secondary without primary", node(main_context=False), ("missing_payload",)),
    Failure("edited notes", node(notes='{"ort_lite": 1}'), ("format",)),
    Failure(
        "foreign, zeros",
        replace_foreign_payload(lambda data: bytes(len(data))),
        VENDOR,
        by_vendor=True,
    ),
    Failure("foreign, text", replace_foreign_payload(lambda _: b"engine"), VENDOR, by_vendor=True),
    Failure(
        "foreign, empty",
        replace_foreign_payload(lambda _: b""),
        (*VENDOR, "missing_payload"),
        by_vendor=True,
    ),
)
CASES = [
    pytest.param(row, embed, id=f"{row.name}-{'embedded' if embed else 'external'}")
    for row in ROWS
    for embed in row.embedded
]


class FailurePromises(ReloadPromises):
    """Error reports that users get, whichever EP made the payload."""

    def load_session(self, made: ContextFile, *, from_bytes: bool) -> InferenceSession:
        """A session, from the model's path or from its bytes."""
        if not from_bytes:
            return self.session(made.path)
        return self.session(made.path.read_bytes(), {"ep.context_file_path": str(made.path)})

    @SOURCE
    @pytest.mark.parametrize(("row", "embed"), CASES)
    @pytest.mark.usefixtures("context_ep")
    def test_the_failure_table(
        self, taken: OracleCase, tmp_path: Path, row: Failure, *, embed: bool, from_bytes: bool
    ) -> None:
        """INVALID_GRAPH, its reason, and what mends it."""
        made = self.write_context(tmp_path / "m", taken, embed=embed)
        row.spoil(made)
        with pytest.raises(InvalidGraph) as refusal:
            self.load_session(made, from_bytes=from_bytes)
        assert str(refusal.value).startswith("[ONNXRuntimeError] : 10 : INVALID_GRAPH : ")
        assert refusal.value.reason in row.reasons, str(refusal.value)
        assert refusal.value.hint
        if not row.by_vendor:
            self.assert_checked(made, str(refusal.value.reason), from_bytes=from_bytes)

    def assert_checked(self, made: ContextFile, reason: str, *, from_bytes: bool) -> None:
        """A check without a session says the same."""
        options = SessionOptions()
        options.add_session_config_entry("ep.context_file_path", str(made.path))
        source = made.path.read_bytes() if from_bytes else made.path
        providers = [(self.factory.name, self.provider_options)]
        (verdict,) = check_compatibility(source, options, providers)
        assert verdict.reason == reason
        assert verdict.hint

    @EMBED
    @SOURCE
    @pytest.mark.usefixtures("context_ep")
    def test_what_the_failure_table_does_not_name_loads(
        self, taken: OracleCase, tmp_path: Path, *, embed: bool, from_bytes: bool
    ) -> None:
        """An unchanged foreign payload: the rows fail for their own reason."""
        made = self.write_context(tmp_path / "m", taken, embed=embed)
        feed = taken.feeds[0]
        with self.load_session(made, from_bytes=from_bytes) as session:
            expected = session.run(None, dict(feed))
        replace_foreign_payload(lambda data: data)(made)
        with self.load_session(made, from_bytes=from_bytes) as session:
            outputs = session.run(None, dict(feed))
        for mine, right in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(mine, right)
