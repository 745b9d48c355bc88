# SPDX-License-Identifier: Apache-2.0
"""The arm while it is calibrated: its joint_states, and the zeros of ik_servos."""

from __future__ import annotations

from types import TracebackType

import numpy as np
import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from ik_node.checks import Array
from ik_node.errors import InputError, join_names
from ik_node.ros.conversions import measured_values
from ik_node.ros.interfaces import MEASURED, subscribe
from ik_node.ros.run import Spinner, begin
from ik_node.steady import steady

from .estimator import TouchModel
from .session import LASTING, still

DRIVER = '/ik_servos'
FLUSH = 0.2  # [s] in which messages that have waited arrive
LOOKING = 1.0  # [s] for the driver


class LiveArm:
    """Reads the joints of a running arm. A context; raises InputError for joints that are not published."""

    def __init__(self, joint_names: tuple[str, ...]) -> None:
        begin()
        self._names = joint_names
        self._node = rclpy.create_node('ik_calibrate')
        self._spinner = Spinner(self._node)
        self._seen: list[Array] = []
        self._latest: dict[str, float] = {}
        subscribe(self._node, JointState, 'joint_states', self._take, MEASURED)
        self._set = self._node.create_client(SetParameters, f'{DRIVER}/set_parameters')
        self._zero = self._node.create_client(Trigger, f'{DRIVER}/set_zero')
        end = steady() + LOOKING
        while steady() < end and not self.has_driver:
            self._spinner.spin(0.1)

    def __enter__(self) -> LiveArm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._node.destroy_node()
        rclpy.shutdown()

    @property
    def has_driver(self) -> bool:
        """Whether ik_servos runs the arm, which can keep zeros."""
        return bool(self._zero.service_is_ready())

    @property
    def advice(self) -> str:
        """What to do so that the arm can be moved by hand."""
        if not self.has_driver:
            return 'The arm must be free to be moved by hand.'
        call = f'ros2 service call {DRIVER}/torque std_srvs/srv/SetBool "{{data: false}}"'
        return f'Hold the arm, and take its torque off: {call}'

    def _take(self, message: JointState) -> None:
        try:
            self._latest |= measured_values(message)
        except InputError:
            return
        if set(self._names) & set(message.name) and all(name in self._latest for name in self._names):
            self._seen.append(np.array([self._latest[name] for name in self._names]))

    def read(self) -> list[Array]:
        """Return the joints (n,) [rad or m] of all messages within LASTING from now on."""
        self._latest.clear()
        for seconds in (FLUSH, LASTING):
            self._seen.clear()
            end = steady() + seconds
            while steady() < end:
                self._spinner.spin(0.02)
        if not self._seen and (missing := [name for name in self._names if name not in self._latest]):
            raise InputError(f'nothing is published on joint_states about {join_names(missing)}: does the arm run?')
        return list(self._seen)

    def move_zeros(self, model: TouchModel, zeros: dict[str, float]) -> str:
        """Have ik_servos add zeros [rad or m] to all positions that it measures, and return what it says.

        It is told in which positions the arm stands now. Raises InputError if the arm moves, or they are not stored.
        """
        now = still(model, self.read())
        names = model.arm.joint_names
        pose = ', '.join(f'{name}={value + zeros[name]:.6f}' for name, value in zip(names, now.tolist(), strict=True))
        self._know(pose)
        try:
            done = self._spinner.call(f'{DRIVER}/set_zero', f'{DRIVER} has ended', f'{DRIVER} does not respond')
        finally:
            self._know('')  # or a later call of set_zero would store a pose of the past
        if not done.success:
            raise InputError(f'ik_servos does not store the zeros: {done.message}')
        return str(done.message)

    def _know(self, pose: str) -> None:
        values = [Parameter('known_pose', value=pose).to_parameter_msg()]
        future = self._set.call_async(SetParameters.Request(parameters=values))
        self._spinner.wait(future.done, f'{DRIVER} does not respond')
        (result,) = future.result().results
        if not result.successful:
            raise InputError(f'ik_servos does not take the zeros: {result.reason}')
