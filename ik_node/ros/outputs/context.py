"""OutputContext: what an output may use of its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ik_node.ros.node_time import NodeTime
from ik_node.ros.outputs.clocks import Clocks


@dataclass(frozen=True, eq=False)
class OutputContext:
    """What an output may use of its node.

    prefix: of its topics. clocks: that of the measurements. fail(reason): stops the arm, since it cannot be
    commanded.
    """

    node: Any
    prefix: str
    time: NodeTime
    clocks: Clocks
    fail: Callable[[str], None]
