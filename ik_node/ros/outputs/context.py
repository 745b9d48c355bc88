"""OutputContext: what an output may use of its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ik_node.ros.node_time import NodeTime


@dataclass(frozen=True, eq=False)
class OutputContext:
    """What an output may use of its node.

    fail(reason): stops the arm, since it cannot be commanded. hold_back(): whether a sample for the picture
    must not be published, since a driver may just have started.
    """

    node: Any
    time: NodeTime
    fail: Callable[[str], None]
    hold_back: Callable[[], bool]
