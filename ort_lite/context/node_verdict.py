"""NodeVerdict: what is said about one EPContext node."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ort_lite.execution_provider import CompiledModelCompatibility

if TYPE_CHECKING:
    from ctx_formats.errors import Reason
    from ctx_formats.identity import HardwareIdentity
    from ort_lite.status import InvalidGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """The verdict on one EPContext node.

    Attributes:
        node: Its name.
        source: The EP that it is for.
        reason: Of the closed list, where a session refuses the payload; else None.
        message: For a person; "" when optimal.
        hint: What mends it, or "".
        integrity: "verified", or "not recorded" for a producer that writes no digests.
        recorded: What the payload was built for.
        signed_by: Who has signed the model, and whether that is known to be so; "" for nobody.
        present: What is here; None where no SDK had to be asked.
    """

    node: str
    source: str
    verdict: CompiledModelCompatibility
    reason: Reason | None = None
    message: str = ""
    hint: str = ""
    integrity: str = ""
    signed_by: str = ""
    recorded: HardwareIdentity | None = None
    present: HardwareIdentity | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **asdict(self),
            "verdict": self.verdict.name,
            "recorded": self.recorded.to_mapping() if self.recorded else None,
            "present": self.present.to_mapping() if self.present else None,
        }


def refusal(exc: InvalidGraph, *, node: str, source: str, integrity: str = "") -> NodeVerdict:
    """The verdict for what a session raises."""
    return NodeVerdict(
        node=node,
        source=source,
        verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
        reason=exc.reason,
        message=exc.message,
        hint=exc.hint,
        integrity=integrity,
        recorded=exc.recorded,
        present=exc.present,
    )
