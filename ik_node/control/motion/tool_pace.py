# SPDX-License-Identifier: Apache-2.0
"""ToolPace: slows plans down to the speed limits of the tool."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.motion.plans import JointPlan
from ik_node.control.motion.tool_motion import tool_motion
from ik_node.model.arm import Arm

SPACING = 0.01  # [s] between the times at which the speeds of a plan are checked
MOST_PLACES = 400
SHARE = 0.97  # of the limits, as a margin for times between two checks, and for stops
ROLL_SHARE = 1.0 / 3.0  # of the turn rate, for a joint that only rolls the tool
TRIES = 6  # replans with ever lower joint velocities
SLOWEST = 1e-4  # [rad/s or m/s] for joints that a plan does not move


class ToolPace:
    """Limits the speed of tool points to max_speed [m/s] and the turn rate of tips to max_turn_rate [rad/s].

    Infinite: no limit. tools: arms, with the indices of their joints. rolls: indices of joints that only roll
    a tool, and whose speed limit is at most ROLL_SHARE of max_turn_rate. The other joints of their tools have
    the rest, whether the roll moves or not, so that neither slows the other down.
    """

    def __init__(
        self,
        tools: Sequence[tuple[Arm, NDArray[np.int64]]],
        max_speed: float,
        max_turn_rate: float,
        rolls: Sequence[int] | NDArray[np.int64] = (),
    ) -> None:
        self._tools = tuple(tools)
        self._rolls = np.array(rolls, np.int64)
        self.max_speed, self.max_turn_rate = max_speed, max_turn_rate
        self._turn_rates = [self._turn_rate(arm, np.isin(columns, self._rolls)) for arm, columns in tools]

    def _turn_rate(self, arm: Arm, rolls: NDArray[np.bool_]) -> float:
        """Return what of the turn rate is left for the joints of an arm that are not rolls (arm.n,)."""
        fastest = np.minimum(arm.velocity[rolls], ROLL_SHARE * self.max_turn_rate)
        return self.max_turn_rate - float(fastest.sum())

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return math.isfinite(self.max_speed) or math.isfinite(self.max_turn_rate)

    def equals(self, other: ToolPace) -> bool:
        """Whether the limits are the same, for the same arms."""
        arms, others = ([arm for arm, _ in pace._tools] for pace in (self, other))
        limits = self.max_speed, self.max_turn_rate
        return arms == others and limits == (other.max_speed, other.max_turn_rate)

    def excess(self, positions: Array, velocities: Array) -> float:
        """Return the largest share of a limit that is used at positions and velocities (k, n).

        The contributions of the joints are added as if they never cancelled, so that a stop, in which some
        joints rest before others, makes no tool faster. Rolls do not count.
        """
        shares, counted = [], velocities.copy()
        counted[:, self._rolls] = 0.0
        for (arm, columns), turn_rate in zip(self._tools, self._turn_rates, strict=True):
            motion = tool_motion(arm, positions[:, columns], counted[:, columns])
            shares += [motion.most_speed / self.max_speed, motion.most_turn_rate / turn_rate]
        return float(max(share.max() for share in shares))

    def kept(self, plan: JointPlan) -> bool:
        """Whether a plan respects the limits."""
        return self.excess(*places(plan, plan.first)) <= SHARE

    def slowed(self, plan: JointPlan, replan: Callable[[Array], JointPlan | None]) -> JointPlan | None:
        """Return plan or a slower one that respects the limits, None if none is found.

        replan plans the same motion within further joint velocity limits (n,), infinite for rolls. Lower
        limits slow the tool down in proportion but for the changed timing of the joints, hence the
        repetition; the last attempt keeps joint velocities at which no configuration exceeds the limits.
        """
        for attempt in range(TRIES + 1):
            positions, velocities = places(plan, plan.first)
            excess = self.excess(positions, velocities) / SHARE
            if excess <= 1.0:
                return plan
            peaks = np.maximum(np.abs(velocities).max(axis=0), SLOWEST)
            lower = peaks / excess if attempt < TRIES - 1 else peaks * min(1.0, self._harmless(peaks))
            lower[self._rolls] = np.inf
            slower = replan(0.99 * lower)
            if slower is None:
                return None
            plan = slower
        return None

    def _harmless(self, velocities: Array) -> float:
        """Return the share of velocities (n,) at which no configuration exceeds a limit."""
        counted = velocities.copy()
        counted[self._rolls] = 0.0
        return min(
            self._harmless_to(arm, counted[columns], turn_rate)
            for (arm, columns), turn_rate in zip(self._tools, self._turn_rates, strict=True)
        )

    def _harmless_to(self, arm: Arm, velocities: Array, turn_rate: float) -> float:
        """Return the same for one tool, the velocities (arm.n,) of its joints and their turn rate."""
        turning = ~arm.prismatic
        turn = float(velocities[turning].sum())
        speed = arm.reach * turn + float(velocities[~turning].sum())
        return SHARE * min(self.max_speed / max(speed, SLOWEST), turn_rate / max(turn, SLOWEST))


def places(plan: JointPlan, end: float | None = None) -> tuple[Array, Array]:
    """Return positions and velocities (k, n) along a plan, SPACING apart, both ends included.

    end [s]: None: that of the plan.
    """
    end = plan.duration if end is None else end
    count = min(max(math.ceil(end / SPACING), 1), MOST_PLACES) + 1
    times = np.linspace(0.0, end, count).tolist()
    rows = plan.at_times(times)
    return rows[:, 0], rows[:, 1]
