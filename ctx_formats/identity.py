"""The machine and SDK a payload was compiled for, comparable field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field_names

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field in which two identities differ."""

    field: str
    recorded: str
    present: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareIdentity:
    """Recorded in the EPContext node at export, compared at import.

    A field that the driver, the SDK or the producer of a file does not report is "", never a
    guess; it is then left out of comparisons.

    Attributes:
        vendor: As the driver spells it, e.g. "Intel(R) Corporation".
        device: Kind and full name, e.g. "CPU: Intel(R) Xeon(R) Processor @ 2.20GHz".
        architecture: Instruction-set or chip family, e.g. "intel64", "NPU4000", "gfx942".
        driver_version: As reported; compared for equality, never ordered.
        sdk_version: Version of the EP's SDK without build, e.g. OpenVINO "2026.4.1".
        sdk_build: Full build text of the SDK, e.g. "2026.4.1-22982-e213a147257".
        requirements: The vendor's own compatibility text for the payload, opaque to us.
    """

    vendor: str = ""
    device: str = ""
    architecture: str = ""
    driver_version: str = ""
    sdk_version: str = ""
    sdk_build: str = ""
    requirements: str = ""

    def differences(self, present: HardwareIdentity) -> tuple[FieldDifference, ...]:
        """Fields that both sides report and that differ, in declaration order."""
        pairs = ((n, getattr(self, n), getattr(present, n)) for n in field_names(HardwareIdentity))
        return tuple(FieldDifference(n, a, b) for n, a, b in pairs if a and b and a != b)

    def to_mapping(self) -> dict[str, str]:
        """The non-empty fields, for JSON."""
        pairs = ((name, getattr(self, name)) for name in field_names(HardwareIdentity))
        return {name: value for name, value in pairs if value}

    @classmethod
    def from_mapping(cls, values: Mapping[str, str]) -> HardwareIdentity:
        """Read what `to_mapping` wrote; unknown keys of newer writers are ignored.

        Raises:
            ValueError: A value is not text.
        """
        known = field_names(cls)
        picked = {key: value for key, value in values.items() if key in known}
        if not all(isinstance(value, str) for value in picked.values()):
            raise ValueError("every field of a HardwareIdentity is text")
        return cls(**picked)
