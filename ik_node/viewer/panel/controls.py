# SPDX-License-Identifier: Apache-2.0
"""Controls of the panel."""

from __future__ import annotations

from typing import Any


def update(control: Any, **values: Any) -> None:
    """Set the properties of a control that differ; viser needs longer to find that nothing has changed."""
    for name, value in values.items():
        if getattr(control, name) != value:
            setattr(control, name, value)
