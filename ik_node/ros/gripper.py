# SPDX-License-Identifier: Apache-2.0
"""GripperInterface: the topics and the action of the gripper of a tool; GripperRemote: them from another node."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from ik_node.checks import yaml_number
from ik_node.control.controller import ArmController, Inbox
from ik_node.control.gripper import SAME, Grip, GripperState, GripperWatch
from ik_node.control.requests import Aim, Report, Snapshot, UnstampedRequest
from ik_node.control.settings import ArmSettings
from ik_node.control.states import COMMANDING
from ik_node.errors import InputError, quoted
from ik_node.model.gripper import Gripper
from ik_node.steady import steady

from .conversions import report_values
from .interfaces import GRIPPER, GRIPPER_STATUS, LATCHED, installed, subscribe
from .reports import diagnostic

REPEAT = 1.5  # [s] within which an unchanged opening belongs to a stream and is not a new command
PERIOD = 0.05  # [s] from one look at the gripper to the next
CHANGE = 0.01  # share of the stroke from which another opening is published
NO_GRIPPER = 'no gripper is known behind this arm: set gripper_joint, and gripper_positions for one without limits'
ACTION = '~/{}gripper_cmd'
REPLACED = 'another command has replaced it'
DROPPED = 10.0  # [s] after which a command that was not carried out never will be
OWN = 0.15  # [s] for which a motion for the last command goes on
OLDER = ('humble', 'iron', 'jazzy')  # distributions whose controllers and MoveIt use GripperCommand


@dataclass(frozen=True, eq=False)
class GripperRequest(UnstampedRequest):
    """Move the gripper of a tool to an opening from 0, closed, to 1, open; the arm continues what it does."""

    opening: float = math.nan
    position: float | None = None  # of its joint [rad or m], if that was given

    def resolve(self, snapshot: Snapshot) -> Aim | None:
        """Return the positions of the joints of the gripper. Raises InputError for another opening."""
        gripper = snapshot.tool.gripper
        if gripper is None:
            raise InputError(NO_GRIPPER)
        if not 0.0 <= self.opening <= 1.0:
            if self.position is not None:
                name, (closed, opened) = gripper.joint.name, gripper.ends[gripper.joint.name]
                if math.isnan(self.position):
                    raise InputError(f'the goal has no position of joint {quoted(name)}')
                raise InputError(
                    f'joint {quoted(name)} is from {closed:.4g} (closed) to {opened:.4g} (open), got {self.position:g}'
                )
            raise InputError(f'an opening is from 0 (closed) to 1 (open), got {self.opening:g}')
        return gripper.positions(self.opening)


class GripperInterface:
    """Passes openings to the controller of a tool, and publishes what the gripper does."""

    def __init__(
        self,
        node: Node,
        prefix: str,
        tool: str,
        controller: Callable[[], ArmController],
        inbox: Inbox,
        settings: Callable[[], ArmSettings],
    ) -> None:
        """controller: that which moves the tool; prefix: of the names of topics."""
        self._prefix, self._tool, self._name = prefix, tool, f'{node.get_name()}/{prefix}gripper'
        self._node, self._controller, self._inbox, self._settings = node, controller, inbox, settings
        self._watch = GripperWatch()
        self._last = (math.nan, -math.inf)  # opening on the topic, and when it arrived (steady)
        self._due = -math.inf
        self._published: GripperState | None = None
        self._ends: Mapping[str, tuple[float, float]] | None = None  # of the gripper that is watched
        self._pending: _Pending | None = None  # the goal of the action
        self._efforts: dict[str, float] = {}  # measured, by joint
        self._asked = (math.nan, 0.0)  # opening and effort of the last goal of the action, until another command
        self._status = GRIPPER_STATUS.publisher(node, prefix)
        GRIPPER.subscription(node, self._on_opening, prefix)
        kind = action_type()
        self._action = None if kind is None else self._serve(node, kind)

    def _serve(self, node: Node, kind: Any) -> Any:
        from rclpy.action.server import ActionServer, CancelResponse

        return ActionServer(
            node,
            kind,
            ACTION.format(self._prefix),
            self._execute,
            callback_group=ReentrantCallbackGroup(),
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def _on_opening(self, message: Float64) -> None:
        now, (opening, arrival) = steady(), self._last
        self._last = message.data, now
        replaced = abs(self._watch.state.target - message.data) > SAME  # by another command
        if message.data != opening or replaced or now - arrival >= REPEAT:
            self._inbox.put(GripperRequest(self._tool, GRIPPER.named(self._prefix), opening=message.data))
        else:
            self._published = None  # an answer, although it changes nothing

    def on_report(self, report: Report) -> None:
        """Take a report of the tool: after a rejection or a stop, an unchanged opening is a new command."""
        if report.status == 'rejected' or report.phase == 'stopped':
            self._last = (math.nan, -math.inf)
        if isinstance(report.request, GripperRequest):
            self._published = None
            if report.status == 'rejected':
                values = {'state': 'rejected', 'opening': math.nan, 'target': report.request.opening, 'joint': ''}
                self._status.publish(diagnostic(report.level, self._name, report.message, values))
        pending = self._pending
        if pending is not None and report.request is pending.request:
            if report.status == 'rejected' or report.phase == 'stopped':
                pending.end(report.message)
            else:
                pending.begun = True
        elif (
            pending is not None
            and not pending.begun
            and isinstance(report.request, GripperRequest)
            and report.status != 'rejected'
            and report.request.arrival >= pending.request.arrival
        ):
            pending.end(REPLACED)  # only the newest of several commands is carried out

    def take_efforts(self, message: JointState) -> None:
        """Take the measured efforts of joints, if a message has them."""
        if len(message.effort) == len(message.name):
            self._efforts |= dict(zip(message.name, message.effort, strict=True))

    def step(self, snapshot: Callable[[], Snapshot | None]) -> None:
        """Look at the gripper if it is due; call it in each period, with or without a setpoint.

        snapshot: returns that of the tool.
        """
        if steady() < self._due:
            return
        self._due = steady() + PERIOD
        pending = self._pending
        begun = pending is not None and pending.begun  # before the command is read, which is of that goal then
        now, controller = snapshot(), self._controller()
        gripper = None if now is None else now.tool.gripper
        ends = None if gripper is None else gripper.ends
        if ends != self._ends:
            self._ends, self._watch, self._published = ends, GripperWatch(), None
            if begun and pending is not None:
                pending.end('the gripper has changed')
        if pending is not None and not begun and steady() > pending.request.arrival + DROPPED:
            pending.end('it was dropped before the gripper moved')
        if now is None or gripper is None:
            return
        measured, command = controller.measured(gripper.joint.name), controller.off_arm(gripper.joint.name)
        if measured is None and command is None and math.isnan(now.measured_age):  # an arm that is only shown
            measured = float(now.values[now.model.joints.indices([gripper.joint.name])[0]])
        openings = None if command is None else (gripper.opening(command[0]), gripper.opening(command[1]))
        settings = self._settings()
        if begun and pending is not None:
            self._asked = pending.request.opening, pending.effort
        limit = self._asked[1] if self._asked[1] > 0.0 else settings.gripper_effort
        relief = self._watch.update(
            steady(),
            None if measured is None else gripper.opening(measured),
            openings,
            settings.gripper_squeeze,
            abs(self._efforts.get(gripper.joint.name, 0.0)) / limit if limit > 0.0 else 0.0,
        )
        if abs(self._watch.state.target - self._asked[0]) > SAME:
            self._asked = math.nan, 0.0
        if relief is not None and controller.ready:
            self._put(max(relief, 0.0), 'holding')
        if self._published is not None or now.state in COMMANDING:  # the first one tells clients that it may be moved
            self._publish(gripper)
        if pending is None or not begun:
            return
        if now.state not in COMMANDING:
            pending.end(controller.condition()[1])
        elif openings is None or abs(openings[0] - pending.request.opening) > SAME:
            pending.end(REPLACED)
        elif pending.handle.is_cancel_requested:
            controller.brake_aside(gripper.ends)
            pending.end('cancelled')
        elif self._watch.state.grip is not Grip.MOVING:
            pending.end(self._watch.state.describe() if self._watch.state.grip is Grip.BLOCKED else '')

    def _put(self, opening: float, why: str) -> None:
        self._inbox.put(GripperRequest(self._tool, f'{self._name} ({why})', opening=opening))

    def _publish(self, gripper: Gripper) -> None:
        state, before = self._watch.state, self._published
        if (
            before is not None
            and state.grip is before.grip
            and _alike(state.target, before.target, SAME)
            and _alike(state.opening, before.opening, CHANGE)
        ):
            return
        self._published = state
        values = {
            'state': state.grip.value,
            'opening': state.opening,
            'target': state.target,
            'joint': gripper.joint.name,
        }
        self._status.publish(diagnostic(state.level, self._name, state.describe(), values))

    # The action, whose positions are those of the joint

    async def _execute(self, handle: Any) -> Any:
        """Carry out a goal; a newer one ends it."""
        kind = action_type()
        result = kind.Result()
        parallel = hasattr(result, 'state')
        command = handle.request.command
        snapshot = self._controller().snapshot(self._tool)
        gripper = None if snapshot is None else snapshot.tool.gripper
        name = '' if gripper is None else gripper.joint.name
        if parallel:
            position, effort = (_of_joint(command.name, values, name) for values in (command.position, command.effort))
        else:
            position, effort = command.position, command.max_effort
        opening = math.nan if gripper is None else gripper.opening(gripper.clipped(position))
        request = GripperRequest(self._tool, ACTION.format(self._prefix), opening=opening, position=position)
        if self._pending is not None:
            self._pending.end(REPLACED)
        done = Future(executor=self._node.executor)
        done.add_done_callback(lambda _: None)  # this wakes the executor
        pending = self._pending = _Pending(request, handle, done, effort)
        self._inbox.put(request)
        reason = await done
        if self._pending is pending:
            self._pending = None
        grip, found = self._watch.state.grip, self._found(gripper)
        result.stalled = grip in (Grip.HOLDING, Grip.BLOCKED)
        result.reached_goal = not reason and not result.stalled
        if parallel:
            result.state.name, result.state.position = [name], [found]
        else:
            result.position = found
        if handle.is_cancel_requested:
            handle.canceled()
        elif reason:
            handle.abort()
        else:
            handle.succeed()
        return result

    def _found(self, gripper: Gripper | None) -> float:
        """Return the position of the joint of a gripper [rad or m]: measured, else as it is commanded now, else NaN."""
        if gripper is None:
            return math.nan
        name, opening = gripper.joint.name, self._watch.state.opening
        command = self._controller().off_arm(name)
        if math.isnan(opening) and command is not None:
            return command[1]
        return gripper.positions(opening)[name]


@dataclass
class _Pending:
    request: GripperRequest
    handle: Any
    done: Future
    effort: float  # at which it closes no farther; that of the parameter if it is not above 0
    begun: bool = False  # the gripper moves for it

    def end(self, reason: str) -> None:
        """End the goal; reason: why it has failed, else empty."""
        if not self.done.done():
            self.done.set_result(reason)


def _of_joint(names: Sequence[str], values: Sequence[float], joint: str) -> float:
    """Return the value of a joint, or without names the first one; NaN without one."""
    named = zip(names, values, strict=False) if names else ((joint, value) for value in values)
    return next((float(value) for name, value in named if name == joint), math.nan)


def _alike(first: float, second: float, within: float) -> bool:
    """Whether two numbers differ by less, or both are unknown."""
    return abs(first - second) < within or (math.isnan(first) and math.isnan(second))


def action_type() -> Any:
    """Return the type of the action, None without control_msgs."""
    names = ['GripperCommand', 'ParallelGripperCommand']
    if os.environ.get('ROS_DISTRO', 'jazzy') not in OLDER:
        names.reverse()
    return next((kind for name in names if (kind := installed('control_msgs.action', name)) is not None), None)


class GripperRemote:
    """The gripper of ik_node, from another node. opening: from 0, closed, to 1, open; NaN while it is not known.

    heard: called with each report.
    """

    def __init__(self, node: Node, arm: str, heard: Callable[[Mapping[str, str]], object] = lambda _: None) -> None:
        """arm: the name of ik_node, or that of a tool behind it."""
        self.opening, self.heard, self._moved = math.nan, heard, -math.inf
        self._openings = node.create_publisher(Float64, f'{arm}/gripper', GRIPPER.qos)
        subscribe(node, DiagnosticStatus, f'{arm}/gripper_status', self._on_status, LATCHED)

    @property
    def connected(self) -> bool:
        """Whether ik_node hears commands."""
        return bool(self._openings.get_subscription_count())

    @property
    def moves(self) -> bool:
        """Whether it was commanded from here just now, so that reports may be older."""
        return steady() <= self._moved + OWN

    def open(self, opening: float) -> None:
        """Command an opening."""
        self.opening, self._moved = min(max(opening, 0.0), 1.0), steady()
        self._openings.publish(Float64(data=self.opening))

    def move(self, step: float) -> str:
        """Command an opening by a share of the stroke from where the gripper is; return why that is not possible."""
        if math.isnan(self.opening):
            return 'the opening of the gripper is not known: it is not measured, or the arm has none'
        self.open(self.opening + step)
        return ''

    def _on_status(self, status: DiagnosticStatus) -> None:
        report = report_values(status)
        if not self.moves:
            known = [yaml_number(report.get(key)) for key in ('opening', 'target')]
            self.opening = next((value for value in known if value is not None and value == value), math.nan)
        self.heard(report)
