# SPDX-License-Identifier: Apache-2.0
"""ik_servos: joint_commands in, servos on a bus, joint_states out. It knows nothing of kinematics.

The thread of the arm publishes what it measures; callbacks leave commands and requests for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from ik_node.control.state.report import Level
from ik_node.errors import IkError, InputError
from ik_node.ros.conversions import NS_PER_S, values_by_name
from ik_node.ros.goals.reports import diagnostic
from ik_node.ros.parameters import declare, on_change
from ik_node.ros.qos import NEWEST, STREAM
from ik_node.ros.run import ClosableNode, run
from ik_node.ros.servos.calibrating import Calibrating, read_pose
from ik_node.ros.servos.settings import ServoSettings
from ik_node.servos.arm.arm import ServoArm
from ik_node.servos.arm.cycle import ArmOptions
from ik_node.servos.arm.snapshot import POWERED, ArmSnapshot, ArmState
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.ports import EMULATED, EmulatedArm, opener

REPEATED = 5.0  # [s] from one line in the log to the next about the same thing
LEVELS = {
    ArmState.CLOSED: Level.ERROR,
    ArmState.SILENT: Level.ERROR,
    ArmState.FAULTED: Level.ERROR,
    ArmState.PASSIVE: Level.WARN,
}


class ServosNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_servos', **options)
        self._settings = settings = declare(self, ServoSettings)
        profile = read_profile(settings.profile)
        log = self.get_logger()
        self._emulated = EmulatedArm(settings.profile) if settings.port == EMULATED else None
        port = settings.port if self._emulated is None else self._emulated.port
        self._calibrating = Calibrating(profile, settings, log.info, log.warning)
        self._said, self._ending = (ArmState.CLOSED, ''), False
        self._wanted = settings.torque_at_start
        self._states = self.create_publisher(JointState, 'joint_states', STREAM)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', STREAM)
        self._arm = ServoArm(
            opener(port, profile),
            profile,
            self._calibrating,
            ArmOptions(settings.rate, settings.command_timeout, settings.torque_limit),
            self._publish,
        )
        self.create_subscription(JointState, 'joint_commands', self._on_command, NEWEST)
        self.create_service(SetBool, '~/torque', self._torque)
        self.create_service(Trigger, '~/hold', lambda _, answer: self._answer(answer, self._arm.hold))
        self.create_service(Trigger, '~/clear', lambda _, answer: self._answer(answer, self._arm.clear))
        self.create_service(Trigger, '~/set_zero', lambda _, answer: self._answer(answer, self._set_zero))
        self.create_timer(1.0, self._diagnose)
        on_change(
            self, lambda: self._settings, lambda new: read_pose(new.known_pose, profile.names), self._apply
        )
        self._arm.start()

    def _apply(self, settings: ServoSettings) -> None:
        self._settings = settings

    def come_to_rest(self) -> None:
        """Hold the arm or lower it, as on_exit says."""
        self._ending = True
        release = self._settings.on_exit == 'release' and self._arm.snapshot.state in POWERED
        if release:
            self.get_logger().info('lowering the arm')
        held = self._arm.snapshot.state in POWERED | {ArmState.FAULTED} and not release
        self._arm.stop(release)
        if held:
            self.get_logger().info(
                'the servos go on holding the arm: switch their power off, or start ik_servos again'
            )

    def close(self) -> None:
        """End the thread of the arm, and the node."""
        self._arm.stop()
        if self._emulated is not None:
            self._emulated.close()
        self.destroy_node()

    # Commands

    def _on_command(self, message: JointState) -> None:
        try:
            stamp = Time.from_msg(message.header.stamp)
            age = (self.get_clock().now() - Time.from_msg(message.header.stamp)).nanoseconds / NS_PER_S
            if stamp.nanoseconds and age > self._settings.command_timeout:
                raise InputError(f'it is {age:.2f} s old')
            self._arm.command(values_by_name(message))
        except IkError as error:
            self.get_logger().warning(
                f'command ignored: {error}', throttle_duration_sec=REPEATED, skip_first=False
            )

    def _torque(self, request: SetBool.Request, answer: SetBool.Response) -> SetBool.Response:
        return self._answer(answer, lambda: self._arm.set_torque(request.data))

    def _set_zero(self) -> str:
        arm = self._arm.snapshot
        if arm.state in POWERED or arm.state is ArmState.FAULTED:
            raise InputError('the zero can only be set while the torque is off')
        if not arm.ticks:
            raise InputError(arm.reason or 'no servo has answered')
        path = self._calibrating.store_pose(arm.ticks, self._settings.known_pose)
        if arm.state is ArmState.PASSIVE:
            self._arm.recalibrate()
        return f'stored in {path}'

    def _answer(self, answer: Any, act: Callable[[], str | None]) -> Any:
        try:
            said = act()
            answer.success, answer.message = True, said or self._arm.snapshot.state.value
        except IkError as error:
            answer.success, answer.message = False, str(error)
        return answer

    # What is measured; in the thread of the arm

    def _publish(self, arm: ArmSnapshot) -> None:
        if arm.joints and self.context.ok():
            message = JointState(name=list(arm.joints))
            age = int((time.monotonic() - arm.time) * NS_PER_S)
            now = self.get_clock().now().nanoseconds
            message.header.stamp = Time(nanoseconds=max(now - age, 0)).to_msg()
            message.position = [joint.position for joint in arm.joints.values()]
            message.velocity = [joint.velocity for joint in arm.joints.values()]
            message.effort = [joint.load for joint in arm.joints.values()]
            self._states.publish(message)
        if (arm.state, arm.reason) != self._said:
            self._say(arm)

    def _say(self, arm: ArmSnapshot) -> None:
        """Log a change of the state, but not each begin and end of motions."""
        before, self._said = self._said, (arm.state, arm.reason)
        log = self.get_logger()
        if self._ending:
            return
        if arm.reason and arm.state not in POWERED | {ArmState.PASSIVE}:
            log.error(arm.reason)
        elif arm.reason:
            log.warning(arm.reason)
        elif arm.state is ArmState.PASSIVE and before[0] is not ArmState.PASSIVE:
            log.info('the servos are measured, their torque is off')
        elif arm.state is ArmState.HOLDING and before[0] is not ArmState.FOLLOWING:
            log.info('the arm is held where it is')

    def _diagnose(self) -> None:
        arm = self._arm.snapshot
        if self._wanted and arm.state is ArmState.PASSIVE:
            self._wanted = False
            answer = self._answer(Trigger.Response(), lambda: self._arm.set_torque(True))
            if not answer.success:
                self.get_logger().error(f'the torque stays off: {answer.message}')
        level = LEVELS.get(arm.state, Level.WARN if arm.reason else Level.OK)
        values: dict[str, Any] = {'state': arm.state.value, 'rate': f'{arm.rate:.1f}', 'retries': arm.retries}
        values.update({f'bus errors: {fault}': count for fault, count in arm.faults.items()})
        statuses = [diagnostic(level, self.get_fully_qualified_name(), arm.reason or arm.state.value, values)]
        statuses += [self._of_joint(arm, name) for name in arm.joints]
        array = DiagnosticArray(status=statuses)
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def _of_joint(self, arm: ArmSnapshot, name: str) -> DiagnosticStatus:
        joint = arm.joints[name]
        values = {
            'position': f'{joint.position:.4f}',
            'tick': joint.tick,
            'voltage': f'{joint.voltage:.1f}',
            'temperature': f'{joint.temperature:.0f}',
            'load': f'{joint.load:.3f}',
        }
        level = Level.WARN if joint.conditions else Level.OK
        message = ', '.join(joint.conditions) or 'ok'
        return diagnostic(level, f'{self.get_fully_qualified_name()}/{name}', message, values)


def main() -> int:
    """Run ik_servos."""
    return run('ik_servos', ServosNode)
