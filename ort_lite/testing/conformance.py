"""EpConformance: every promise of an execution provider, one test each."""

from __future__ import annotations

from ort_lite.testing.capability_promises import CapabilityPromises
from ort_lite.testing.context_promises import ContextPromises
from ort_lite.testing.factory_promises import FactoryPromises
from ort_lite.testing.failure_promises import FailurePromises
from ort_lite.testing.run_promises import RunPromises


class EpConformance(
    FactoryPromises, CapabilityPromises, RunPromises, ContextPromises, FailurePromises
):
    """Subclass it, give `factory`, and pytest holds the EP to every promise.

    Class attributes say the rest: `provider_options`, `sdk_modules`, `rtol`, `atol` (see
    `EpUnderTest`). An EP without `export_model` and `import_model` skips what they promise.
    """
