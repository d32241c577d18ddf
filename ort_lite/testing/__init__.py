"""The conformance suite that every execution provider passes, for its author to subclass.

    from ort_lite.testing import EpConformance

    class TestMyEp(EpConformance):
        sdk_modules = ("my_sdk",)

        @property
        def factory(self) -> EpFactory:
            return FACTORY

Needs pytest; run it with the EP's distribution installed (`pip install --editable .`).
"""

from __future__ import annotations

import pytest

# Before the modules are imported: a failed assertion then shows its values.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "capability_promises",
            "context_promises",
            "factory_promises",
            "failure_promises",
            "reload_promises",
            "run_promises",
            "subject",
        )
    )
)

from ort_lite.testing.conformance import EpConformance  # noqa: E402 - see above
from ort_lite.testing.context_file import ContextFile  # noqa: E402 - see above
from ort_lite.testing.oracle_cases import CASE_NAMES, OracleCase, oracle_case  # noqa: E402 - see above

__all__ = ["CASE_NAMES", "ContextFile", "EpConformance", "OracleCase", "oracle_case"]
