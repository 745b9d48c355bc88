# SPDX-License-Identifier: Apache-2.0
"""CommandedJoints: the joints of a robot that an arm commands, in groups, and the positions of all joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.joints.feedback import Feedback
from ik_node.control.joints.joint_group import JointGroup
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.target_plan import TargetPlan
from ik_node.errors import InputError, join_names


class CommandedJoints:
    """The arm is one group; other joints are not commanded until a goal names them.

    arm: the group of the arm. without_position: joints to be commanded, of the arm and of its controller,
    whose position is unknown.
    """

    def __init__(
        self,
        model: JointModel,
        settings: ArmSettings,
        positions: Mapping[str, float],
        robot: SharedRobot,
    ) -> None:
        """positions: by joint name; other joints of the arm: home; the rest: rest position."""
        self._model, self._settings, self._robot = model, settings, robot
        names = model.joint_names
        home = dict(zip(names, model.home.tolist(), strict=True))
        known = {**model.joints.named(model.joints.rest), **home}
        known.update({name: position for name, position in positions.items() if name in known})
        self.arm = JointGroup(
            names,
            model.index,
            limits_of_motion(model, model.index, settings),
            np.array([known[n] for n in names]),
            model.blocks,
        )
        # Joints that the controller moves besides the arm, a gripper for instance; foreign: not of the robot.
        self._listed = settings.listed_joints(names)
        self._held = tuple(name for name in self._listed if name not in names)
        self._foreign: dict[str, float] = {}  # positions at which they are held
        self.without_position: tuple[str, ...] = (*names, *self._held)
        self._others: dict[str, JointGroup] = {}  # by variable: joints off the arm that goals have named
        self._resting = {name: known[name] for name in model.joints.variables if name not in names}
        self._off = model.joints.indices(list(self._resting))
        self._rows: tuple[object, tuple[NDArray[np.bool_], tuple[str, ...]]] | None = None  # see _published
        self._values = model.joints.filled(known)  # of all variables, in the last setpoint

    @property
    def groups(self) -> list[JointGroup]:
        """The commanded joints: those of the arm, and others that goals have named."""
        return [self.arm, *self._others.values()]

    @property
    def commanded(self) -> tuple[str, ...]:
        """The variables that are commanded: those of the arm, and others that goals have named."""
        return (*self.arm.names, *self._others)

    @property
    def needed(self) -> tuple[str, ...]:
        """The joints whose measurements must be believable: the commanded ones and those that are held."""
        return (*self.commanded, *self._held)

    @property
    def moving(self) -> bool:
        """Whether any joint is moving."""
        return any(group.motion.moving for group in self.groups)

    @property
    def braking(self) -> bool:
        """Whether no joint has a target: moving joints come to rest."""
        return all(group.motion.braking or not group.motion.moving for group in self.groups)

    def values(self, feedback: Feedback) -> tuple[Array, Array]:
        """Return position and velocity (n,) of all variables: commanded, else measured, else at rest."""
        variables = self._model.joints.variables
        values, rates = np.zeros((2, len(variables)))
        for (name, rest), i in zip(self._resting.items(), self._off, strict=True):
            measured = feedback.position(name)
            values[i] = rest if measured is None else measured
        for group, commanded in self._robot.neighbours(self):
            for k, name in enumerate(group.names):
                if name not in variables:  # of a description that this arm does not have yet
                    continue
                measured = feedback.position(name) if feedback.expected and not commanded else None
                i = variables.index(name)
                values[i] = group.motion.position[k] if measured is None else measured
                rates[i] = group.motion.velocity[k] if measured is None else 0.0
        for group in self.groups:
            values[group.index], rates[group.index] = group.motion.position, group.motion.velocity
        return values, rates

    def start_of(self, tool: str) -> Array:
        """Return the start (k,) for a goal of a tool: joints that move other tools are at their target."""
        motion, alone = self.arm.motion, self._model.alone(tool)
        q = self.arm.target.copy()
        q[alone] = motion.position[alone]
        return q

    def within(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return positions of the joints of the arm by name, clipped to the limits.

        A joint that is outside its limits may stay there: it must not be sent inside at full speed.
        """
        bounds = zip(self.arm.names, *self.arm.motion.allowed(), strict=True)
        return {
            name: float(np.clip(positions[name], low, high))
            for name, low, high in bounds
            if name in positions
        }

    def _go_on_from(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Continue from position, velocity and acceleration by joint name; return whether all joints can."""
        sent = [group for group in self.groups if states.keys() >= set(group.names)]
        return bool(sent) and all(group.go_on_from(states) for group in sent)

    def _measured(self, feedback: Feedback) -> Array:
        """Return the measured positions (n,) of the arm, NaN where there are none."""
        return np.array([feedback.position(name) for name in self.arm.names], dtype=np.float64)

    def initialise_from_measurement(self, positions: Mapping[str, float]) -> None:
        """Set the arm at rest at measured positions; joints that are not named become without_position."""
        measured = np.array([positions.get(name, np.nan) for name in self.arm.names])
        if not np.isnan(measured).all():
            self.arm.reset(measured)
        self.without_position = tuple(name for name in self.arm.names if name not in positions)
        self._hold(positions)

    def initialise(self, positions: Mapping[str, float]) -> None:
        """Assume the joints of the arm at their last command or at home, others as measured."""
        self.without_position = ()
        self._hold(positions)

    def _hold(self, positions: Mapping[str, float]) -> None:
        """Hold the other joints of the controller; unnamed ones are without position."""
        for name in self._held:
            if name in self._others or name in self._foreign:
                continue
            if name not in positions:
                self.without_position += (name,)
            elif name in self._resting:
                self._others[name] = self._group(name, positions[name])
            else:
                self._foreign[name] = positions[name]

    def _group(self, name: str, position: float) -> JointGroup:
        index = self._model.joints.indices([name])
        limits = limits_of_motion(self._model, index, self._settings)
        return JointGroup((name,), index, limits, np.array([position]))

    def _add(self, targets: Iterable[str], feedback: Feedback, fresh: Mapping[str, float] | None) -> None:
        """Command the joints off the arm that targets name too; see pursue. Raises InputError."""
        new = [name for name in targets if name in self._resting and name not in self._others]
        self._robot.check_free(self, new)
        if self._model.collision is not None and feedback.expected:
            self._robot.check_known(self, feedback.fresh(self._settings.measured_timeout))
        if fresh is not None and (doubt := feedback.doubt(new)):
            raise InputError(doubt)
        missing = [name for name in new if fresh is not None and name not in fresh]
        if missing:
            raise InputError(f'not measured recently: {join_names(missing)}')
        for name in new:
            found = feedback.position(name) if fresh is None else fresh[name]
            self._others[name] = self._group(name, self._resting[name] if found is None else found)

    def forget_positions(self) -> None:
        """Forget the positions of the joints."""
        self.without_position = (*self.arm.names, *self._held)
        self.arm.reset(self.arm.motion.position)
        self._others.clear()
        self._foreign.clear()

    def check_listed(self, plan: TargetPlan) -> None:
        """Raise InputError unless the controller moves all joints of a plan that has joint targets."""
        own = zip(self.arm.names, np.isnan(plan.joints), strict=True)  # type: ignore[arg-type]
        targets = (*(name for name, keeps in own if not keeps), *plan.others)
        missing = [name for name in targets if name not in self._listed]
        if missing:
            raise InputError(
                f'the controller moves {join_names(self._listed)}, not {join_names(missing)}: move it with '
                'its own controller, or list it in the parameter controller_joints if this controller has it'
            )

    def _setpoint(self, time: float, values: Array, rates: Array, whole: bool, replanned: bool) -> Setpoint:
        """Return the setpoint at time [s], values and rates (n,) of all variables; whole: see _published."""
        positions, velocities = self._model.joints.expand(values, rates)
        rows, names = self._published(whole)
        held = np.array(list(self._foreign.values()))
        return Setpoint(
            time,
            (*names, *self._foreign),
            np.append(positions[rows], held),
            np.append(velocities[rows], np.zeros(held.size)),
            self._listed,
            replanned,
        )

    def _published(self, whole: bool) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
        """Return the joints in the setpoints, as mask and names: those that it commands.

        whole: also joints that belong to no arm, if this is the first one.
        """
        others = frozenset(self._robot.commanded(self)) if whole and self._robot.is_first(self) else None
        key = (self._model, self.commanded, others)
        if self._rows is None or key != self._rows[0]:
            own = self._model.driven_by(self.commanded)
            rows = own if others is None else ~self._model.driven_by(tuple(others))
            pairs = zip(self._model.joints.names, rows, strict=True)
            self._rows = key, (rows, tuple(name for name, row in pairs if row))
        return self._rows[1]

    def _states(self, setpoint: Setpoint) -> Array:
        """Return position, velocity and acceleration (3, k) of the joints of the controller."""
        known: dict[str, tuple[float, ...]] = {}
        for group in self.groups:
            rows = np.transpose(group.motion.state)
            known.update(zip(group.names, map(tuple, rows.tolist()), strict=True))
        return np.array(
            [known.get(n, (p, 0.0, 0.0)) for n, p in zip(setpoint.controller, setpoint.listed(), strict=True)]
        ).T
