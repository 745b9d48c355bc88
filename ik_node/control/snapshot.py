"""Snapshot: an arm at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.checks import Array
from ik_node.control.arm_model import ArmModel
from ik_node.control.states import ON_ITS_WAY, State


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An arm at one moment: values (n,) of model.joints.variables, target (arm.n,), time left [s]."""

    model: ArmModel
    state: State
    values: Array
    target: Array
    remaining: float

    @property
    def position(self) -> Array:
        """Commanded positions (arm.n,) of the joints of the arm."""
        return self.values[self.model.arm_index]

    @property
    def moving(self) -> bool:
        """Whether the joints are on their way."""
        return self.state in ON_ITS_WAY or self.state in (State.STOPPING, State.HAND_GUIDED)
