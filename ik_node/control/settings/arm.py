# SPDX-License-Identifier: Apache-2.0
"""ArmSettings: all parameters of ik_node; here are those of motion, outputs and real arms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ik_node.checks import unit_vector
from ik_node.control.settings.description import DescriptionSettings
from ik_node.control.settings.goals import GoalSettings
from ik_node.control.settings.search import SearchSettings
from ik_node.control.settings.teleop import TeleopSettings
from ik_node.control.settings.workspace import Workspace
from ik_node.errors import InputError
from ik_node.settings import check, parameter


@dataclass(frozen=True)
class ArmSettings(TeleopSettings, GoalSettings, SearchSettings, DescriptionSettings):
    """The parameters of ik_node, in the order of config/ik_node.yaml: those of the last base come first."""

    output: str = parameter(
        'joint_states',
        'destination of the commands: joint_states, joint_trajectory, position_commands or '
        'follow_joint_trajectory; joint_states may be added to another one',
        read_only=True,
    )
    controller: str = parameter(
        '',
        'name of the controller, such as arm_controller; it precedes the name of the topic or action; '
        'empty: no prefix',
        read_only=True,
    )
    controller_joints: tuple[str, ...] = parameter(
        ('',),
        "joints of the controller in its order, including those off the arm; [''] (default) means the "
        'joints of the arm',
        read_only=True,
    )
    publish_rate: float = parameter(100.0, 'setpoints per second [Hz]', low=1.0, high=1000.0)
    speed_scaling: float = parameter(
        0.5, 'fraction of the URDF velocity limits that is used', low=0.001, high=1.0
    )
    max_acceleration: float = parameter(
        5.0, 'acceleration limit of every revolute joint [rad/s^2]', low=0.01, high=1e4
    )
    max_jerk: float = parameter(50.0, 'jerk limit of every revolute joint [rad/s^3]', low=0.01, high=1e6)
    max_linear_acceleration: float = parameter(
        1.0, 'acceleration limit of every prismatic joint [m/s^2]', low=0.001, high=1e4
    )
    max_linear_jerk: float = parameter(
        10.0, 'jerk limit of every prismatic joint [m/s^3]', low=0.001, high=1e6
    )
    joint_limits_file: str = parameter(
        '',
        'path of a joint_limits.yaml in the format of MoveIt; it can only tighten the limits of the URDF',
        read_only=True,
    )
    joint_limit_margins: tuple[float, ...] = parameter(
        (0.0,),
        'distance of the joints from their position limits [rad, m]; a single value applies to every joint',
    )
    max_tool_speed: float = parameter(
        0.0,
        'speed limit of the tool point [m/s]; 0: none',
        low=0.0,
        high=100.0,
    )
    max_tool_turn_rate: float = parameter(
        0.0,
        'limit of the angular velocity of the tip [rad/s]; a joint that only rolls the tool may use a third '
        'of it; 0: none',
        low=0.0,
        high=100.0,
    )
    workspace: tuple[float, ...] = parameter(
        (0.0,) * 6,
        'box of the tool point: minimum x, y, z, then maximum x, y, z in the base frame [m]; all 0: '
        'the reach of the arm',
        size=6,
    )
    self_collision: str = parameter(
        'auto',
        'reject goals and motions with self-collision; auto: if coal is installed and the description '
        'has collision shapes',
        choices=('auto', 'true', 'false'),
    )
    mesh_path: str = parameter(
        '', 'folder of meshes for collision shapes, in addition to installed ROS packages'
    )
    srdf_file: str = parameter('', 'path of an SRDF file with further pairs of links that are not checked')
    home: tuple[float, ...] = parameter(
        (0.0,),
        'joint positions of ~/home [rad, m], clipped to the limits; a single value applies to every joint',
    )
    wait_for_measured: str = parameter(
        'auto',
        'send no command before every joint of the arm has been measured; auto: with any output but '
        'joint_states, and once joint_states is remapped or measured_joint_states has a publisher',
        choices=('auto', 'true', 'false'),
    )
    measured_timeout: float = parameter(
        1.0, 'age of a measurement at which the arm stops [s]; 0: never', low=0.0, high=3600.0
    )
    max_following_error: float = parameter(
        0.35,
        'following error of a revolute joint at which the arm stops [rad]',
        low=1e-3,
        high=10.0,
    )
    max_linear_following_error: float = parameter(
        0.03, 'following error of a prismatic joint at which the arm stops [m]', low=1e-4, high=10.0
    )
    following_delay: float = parameter(
        0.1,
        'lag of measurements behind commands that does not count as following error [s]',
        low=0.0,
        high=2.0,
    )
    arrival_tolerance: float = parameter(
        0.05,
        'distance of a measured revolute joint from its target within which it has arrived, after a second; '
        'within 0.01 rad at once [rad]',
        low=1e-4,
        high=10.0,
    )
    linear_arrival_tolerance: float = parameter(
        0.001, 'the same for prismatic joints [m]', low=1e-5, high=10.0
    )
    hand_guiding_timeout: float = parameter(
        60.0, 'maximum duration of hand guiding [s]', low=1.0, high=3600.0
    )
    accept_other_sessions: bool = parameter(
        False, 'take goals from pages and programs that another ik_demo or ros2 launch has started'
    )

    def __post_init__(self) -> None:
        check(self)
        unit_vector('parameter tool_axis', self.tool_axis)
        self.check_search()
        Workspace.check(self.workspace)
        names = self.controller_joints
        if len(set(names)) < len(names) or ('' in names and len(names) > 1):
            raise InputError(f'parameter controller_joints must be different names, got {list(names)}')
        for name in ('home', 'joint_limit_margins'):
            if not getattr(self, name):
                raise InputError(f'parameter {name} must be one number, or one per joint, got none')

    def tool_rates(self) -> tuple[float, float]:
        """Return the limits of the tool [m/s, rad/s], infinite where there is none."""
        return self.max_tool_speed or math.inf, self.max_tool_turn_rate or math.inf

    def listed_joints(self, arm_joints: tuple[str, ...]) -> tuple[str, ...]:
        """Return the joints of the controller in its order, for the joints of an arm."""
        return arm_joints if self.controller_joints == ('',) else self.controller_joints

    def bounds(self) -> tuple[object, ...]:
        """Return what decides the position and velocity limits of a robot."""
        links = (self.base_link, self.tip_link) if any(self.joint_limit_margins) else ()
        return self.joint_limits_file, self.joint_limit_margins, links

    def same_model(self, other: ArmSettings) -> bool:
        """Whether both settings build the same ArmModel."""
        return self._model_parts() == other._model_parts()

    def _model_parts(self) -> tuple[object, ...]:
        collision = self.self_collision, self.mesh_path, self.srdf_file
        return self.tool(), self.search(), self.home, self.bounds(), collision
