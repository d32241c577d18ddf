"""Cases that no engine survives, for the tests of what runs cases: no engine is tried on them."""

from __future__ import annotations

import atexit
import os
import time

from attacks.attack import Engine, attack
from attacks.on_models import X, Y, model


@attack("ends: at once", alone=True, engines=())
def _abort(_: Engine) -> None:
    os.abort()


@attack("ends: at its exit", alone=True, engines=())
def _abort_at_exit(engine: Engine) -> None:
    atexit.register(os.abort)
    engine.check(model(), {"x": X}, Y)


@attack("ends: never", alone=True, engines=())
def _hang(_: Engine) -> None:
    while True:
        time.sleep(60)


@attack("ends: never at its exit", alone=True, engines=())
def _hang_at_exit(engine: Engine) -> None:
    atexit.register(_hang, engine)
    engine.check(model(), {"x": X}, Y)
