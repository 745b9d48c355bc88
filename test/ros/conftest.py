# SPDX-License-Identifier: Apache-2.0
"""What programs of a terminal find when they are called in the process of a test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from ik_node.console import ENDING
from ik_node.ros.sessions import DOMAIN


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signals come to the test again once the program has ended; it joins no session of this computer."""
    monkeypatch.setenv(DOMAIN, '1')
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
