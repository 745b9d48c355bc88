# SPDX-License-Identifier: Apache-2.0
"""Programs that tests call in their process have their workers there."""

import pytest
from programs import Here


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Replace the worker processes of programs."""
    monkeypatch.setattr('ik_node.tools.workers.Processes', Here)
