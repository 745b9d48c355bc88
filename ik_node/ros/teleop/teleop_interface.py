# SPDX-License-Identifier: Apache-2.0
"""TeleopInterface: teleoperation topics and services, named as in MoveIt Servo, for a TeleopController.

Callbacks only store the newest command; a thread converts it to joint positions, at the publish rate and when
a command arrives. No command moves the arm for longer than incoming_command_timeout. Poses are ignored while
the clutch is open.
"""

from __future__ import annotations

import math
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from rclpy.node import Node
from std_msgs.msg import Bool, Int8
from std_srvs.srv import SetBool

from ik_node.checks import Array
from ik_node.control.controller.controller import ArmController
from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.teleop.teleop_controller import TeleopController
from ik_node.errors import InputError, join_names
from ik_node.ros.conversions import check_stamp, pose_matrix
from ik_node.ros.goals.frames import Frames
from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.interfaces import (
    DELTA_JOINTS,
    DELTA_TWIST,
    ENABLE,
    PAUSE_SERVO,
    POSE_TARGET,
    SERVO_STATUS,
    SWITCH_COMMAND_TYPE,
)
from ik_node.ros.remarks import Remarks

JOINT_JOG, TWIST, POSE = 'joint_jog', 'twist', 'pose'  # in the order of moveit_msgs/srv/ServoCommandType
COMMANDS = (JOINT_JOG, TWIST, POSE)
INVALID, NO_WARNING, JOINT_BOUND = -1, 0, 6  # moveit_msgs/msg/ServoStatus


class TeleopInterface:
    """Passes operator commands to a TeleopController."""

    def __init__(
        self,
        node: Node,
        prefix: str,
        controller: ArmController,
        frames: Frames,
        time: NodeTime,
        settings: Callable[[], ArmSettings],
    ) -> None:
        """prefix: of the topics and services."""
        self._node, self._frames, self._time = node, frames, time
        self._rejection = ''  # why this tool cannot be teleoperated
        self._settings = settings
        self._changed = threading.Condition(OrderedLock(Rank.TELEOP))  # type: ignore[arg-type]
        self._command: tuple[str, Any, float] | None = None  # kind, message, when it was received [s]
        self._new = self._closing = self._paused = False
        self._remarks = Remarks()
        self._kind = ''  # the only kind that is accepted; empty: every kind
        self._teleop = TeleopController(controller)
        self._code = NO_WARNING
        for kind, topic in ((TWIST, DELTA_TWIST), (JOINT_JOG, DELTA_JOINTS), (POSE, POSE_TARGET)):
            topic.subscription(node, partial(self._store, kind), prefix)
        ENABLE.subscription(node, self._enable, prefix)
        PAUSE_SERVO.provide(node, self._pause, prefix)
        if SWITCH_COMMAND_TYPE.type is not None:
            SWITCH_COMMAND_TYPE.provide(node, self._switch, prefix)
        self._status = SERVO_STATUS.publisher(node, prefix)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout=1.0)

    def reject(self, why: str) -> None:
        """Reject commands from now on, because this tool cannot be teleoperated; empty: accept them."""
        with self._changed:
            self._rejection = why

    # Storing

    def _store(self, kind: str, message: Any) -> None:
        with self._changed:
            if self._paused or self._kind not in ('', kind):
                return
            self._command, self._new = (kind, message, self._time.now()), True
            self._changed.notify()

    def _enable(self, message: Bool) -> None:
        self._teleop.enable(message.data, self._time.now(), self._settings())

    def _pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data:
            self._teleop.clutch.drop()
        with self._changed:
            if self._paused and not request.data:  # a press during the pause does not count
                self._teleop.clutch.drop()
            self._paused = request.data
            if self._command is not None:  # its motion ends
                self._command, self._new = (*self._command[:2], -math.inf), False
        response.success, response.message = True, 'paused' if request.data else 'commands are accepted'
        return response

    def _switch(self, request: Any, response: Any) -> Any:
        response.success = request.command_type in range(len(COMMANDS))
        if response.success:
            with self._changed:
                self._kind = COMMANDS[request.command_type]
        return response

    # Steps, in a thread of their own

    def _run(self) -> None:
        while not self._closing and self._node.context.ok():
            period = 1.0 / self._settings().publish_rate
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._new, None if self._command is None else period
                )
            self.step()

    def step(self) -> None:
        """Carry out the newest command."""
        with self._changed:
            if self._closing:
                return
            command, new, self._new = self._command, self._new, False
            rejection = self._rejection
        if command is not None and not self._try(partial(self._carry_out, command, new, rejection)):
            self._try(self._forget)

    def _try(self, act: Callable[[], None]) -> bool:
        """Whether act succeeds. An unexpected error is logged: the next command may succeed."""
        try:
            act()
        except Exception:
            if not self._closing and self._node.context.ok():
                self._node.get_logger().error(
                    f'unexpected error, please report it: {traceback.format_exc()}',
                    throttle_duration_sec=10.0,
                )
            return False
        return True

    def _carry_out(self, command: tuple[str, Any, float], new: bool, rejection: str) -> None:
        try:
            self._step(*command, new, rejection)
        except InputError as error:
            self._forget()
            self._publish_status(INVALID, str(error))
            if self._remarks.new(sentence := f'{command[0]} command ignored: {error}'):
                self._node.get_logger().warning(sentence)

    def _forget(self) -> None:
        """Discard the command and end its motion."""
        with self._changed:
            if self._new:
                return
            self._command = None
        self._teleop.end()

    def _step(self, kind: str, message: Any, received: float, new: bool, rejection: str) -> None:
        settings, now, teleop = self._settings(), self._time.now(), self._teleop
        if now - received > settings.incoming_command_timeout or now < received:
            self._forget()
            return
        if rejection:
            raise InputError(rejection)
        arm = teleop.ready()
        check_stamp(message.header.stamp, self._time.now_ns(), settings.goal_timeout)
        if kind == JOINT_JOG:
            moves = teleop.jog(arm, _joint_velocities(message, arm, settings), now, settings)
        elif kind == TWIST:
            R = self._in_base(message, arm)[:3, :3]
            linear, angular = _twist(message, settings)
            moves = teleop.twist(arm, R @ linear, R @ angular, now, settings)
        else:
            if new:
                pose = self._in_base(message, arm) @ pose_matrix(message.pose)
                teleop.take(arm, pose, received, self._time.of(message.header.stamp), settings)
            moves = teleop.follow(arm, now, settings)
            if teleop.ignored:
                self._publish_status(INVALID, teleop.ignored)
        if moves:
            self._publish_status(JOINT_BOUND if teleop.held_back else NO_WARNING)

    def _in_base(self, message: Any, arm: Snapshot) -> Array:
        """Return the pose T (4, 4) in the base link of the frame of a message."""
        return self._frames.in_base(message.header, arm.model, arm.values)

    def _publish_status(self, code: int, message: str = '') -> None:
        """Publish a status when its code changes."""
        if code == self._code:
            return
        self._code = code
        if SERVO_STATUS.type is Int8:
            self._status.publish(Int8(data=code))
        else:
            self._status.publish(SERVO_STATUS.type(code=code, message=message))


def _twist(message: TwistStamped, settings: ArmSettings) -> tuple[Array, Array]:
    """Return linear [m/s] and angular [rad/s] velocity, each (3,), in the frame of the message."""
    parts = message.twist.linear, message.twist.angular
    linear, angular = (np.array([part.x, part.y, part.z]) for part in parts)
    if not (np.isfinite(linear).all() and np.isfinite(angular).all()):
        raise InputError(f'a twist must be finite, got linear {linear.tolist()}, angular {angular.tolist()}')
    if settings.command_in_type == 'unitless':
        linear = settings.scale_linear * np.clip(linear, -1.0, 1.0)
        angular = settings.scale_rotational * np.clip(angular, -1.0, 1.0)
    return linear, angular


def _joint_velocities(message: Any, arm: Snapshot, settings: ArmSettings) -> Array:
    """Return the velocities (n,) of the joints of the arm that a JointJog or a JointState asks for."""
    names = list(getattr(message, 'joint_names', None) or getattr(message, 'name', []))
    given = list(getattr(message, 'velocities', None) or getattr(message, 'velocity', []))
    known = arm.model.arm.joint_names
    if len(names) != len(given) or not np.isfinite(given).all():
        raise InputError(f'one finite velocity per joint is needed, got {given} for {join_names(names)}')
    if not names or len(set(names)) < len(names):
        raise InputError(f'each joint must be named once, got {join_names(names) if names else "none"}')
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f'unknown joints: {join_names(unknown)}; joints: {join_names(known, unknown[0])}')
    wanted = dict(zip(names, given, strict=True))
    velocities = np.array([wanted.get(name, 0.0) for name in known])
    if settings.command_in_type == 'unitless':
        velocities = settings.scale_joint * np.clip(velocities, -1.0, 1.0)
    fastest = settings.speed_scaling * arm.model.arm.velocity
    return np.clip(velocities, -fastest, fastest)
