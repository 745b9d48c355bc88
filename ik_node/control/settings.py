# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node: defaults, texts, units and ranges."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ik_node.checks import Array, unit_vector
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.gripper import Gripper, gripper_of
from ik_node.settings import HasTool, check, parameter
from ik_node.solver.methods import METHODS
from ik_node.solver.workspace_bounds import radial_bounds

NO_CLUTCH = 'none'
AXES = 'xyz'


class Workspace:
    """A box low to high, (3,) each [m], in the base frame. given: by the user, else it is the arm's reach."""

    def __init__(self, low: Array, high: Array, given: bool) -> None:
        self.low, self.high, self.given = low, high, given

    @classmethod
    def of(cls, arm: Arm, corners: Sequence[float]) -> Workspace:
        """Return the box of corners (least x, y, z, largest x, y, z); if all are 0, its reach."""
        if any(corners):
            return cls(np.array(corners[:3]), np.array(corners[3:]), given=True)
        low, high = np.full(3, -np.inf), np.full(3, np.inf)
        for row in radial_bounds(arm):
            low, high = np.maximum(low, row[:3] - row[4]), np.minimum(high, row[:3] + row[4])
        return cls(low, high, given=False)

    @staticmethod
    def check(corners: Sequence[float]) -> None:
        """Raise InputError for corners that span no box."""
        if any(corners) and not all(low < high for low, high in zip(corners[:3], corners[3:], strict=True)):
            raise InputError(
                'parameter workspace must be the minimum x, y, z and then the maximum x, y, z, each '
                f'maximum above its minimum, got {list(corners)}'
            )

    def describe(self) -> str:
        """Return one line for the log."""
        spans = ', '.join(f'{AXES[i]} {self.low[i]:.3f} to {self.high[i]:.3f}' for i in range(3))
        return f'workspace of the tool point [m]: {spans} ({"as given" if self.given else "reach of the arm"})'

    def outside(self, point: Array, slack: float = 0.0) -> str | None:
        """Return by which coordinate a point (3,) is outside by more than slack [m], None if it is inside."""
        for axis, value, low, high in zip(AXES, point.tolist(), self.low, self.high, strict=True):
            if not low - slack <= value <= high + slack:
                return f'{axis} {value:.4g}, allowed: {low:.4g} to {high:.4g}'
        return None

    def around(self, other: Workspace) -> Workspace:
        """Return the smallest box around this one and another."""
        return Workspace(np.minimum(self.low, other.low), np.maximum(self.high, other.high), other.given)

    def reaching(self, point: Array) -> Workspace:
        """Return the smallest box around this one and a point (3,)."""
        return Workspace(np.minimum(self.low, point), np.maximum(self.high, point), self.given)


@dataclass(frozen=True)
class ArmSettings(HasTool):
    """The parameters of ik_node, in the order of config/ik_node.yaml."""

    # Description

    robot_description: str = parameter(
        '',
        'URDF text. If it is empty, urdf_file or the topic is used. It can be changed at run '
        'time only if it was set at start-up and no real arm is connected',
    )
    urdf_file: str = parameter('', 'path of a .urdf or .xacro file. If it is empty, the topic is used', read_only=True)
    xacro_args: str = parameter('', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True)
    autostart: bool = parameter(
        True,
        'whether the node configures and activates itself at start-up instead of waiting for a lifecycle manager',
        read_only=True,
    )
    publish_description: bool = parameter(
        True,
        'whether the text from robot_description or urdf_file is published on the topic robot_description',
        read_only=True,
    )
    tools: tuple[str, ...] = parameter(
        ('',),
        'names of the tools of a robot with several tools. Each has its own parameters, such as '
        "left.tip_link. The default [''] means one tool without a name",
        read_only=True,
    )
    base_link: str = parameter('', 'link in whose frame goals are. If it is empty, the root link')
    tip_link: str = parameter(
        '',
        'link that carries the tool. If it is empty, the first that exists of: tool0, a frame '
        'between the fingers, the end of the longest chain, the link that carries the fingers',
    )
    tool_axis: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0),
        'direction in which the tool points, in the frame of the tip link: x, "y", z, -x, -y, -z or three numbers',
        size=3,
        axis=True,
    )
    tool_point: tuple[float, ...] = parameter((0.0, 0.0, 0.0), 'tool point in the tip frame [m]', size=3)
    gripper_joint: str = parameter(
        '', 'joint that opens the gripper. If it is empty, the description tells; "none" means no gripper'
    )
    gripper_positions: tuple[float, ...] = parameter(
        (0.0, 0.0),
        'positions of the gripper joint when it is closed and when it is open [rad or m]. Two equal numbers mean '
        'its limits',
        size=2,
    )
    gripper_squeeze: float = parameter(
        0.1,
        'how far beyond the surface of an object the gripper is commanded while it holds the object, as a share of '
        'its stroke. More holds tighter and heats the motor',
        low=0.0,
        high=1.0,
    )
    gripper_effort: float = parameter(
        0.0,
        'measured effort, in the unit of joint_states, at which the gripper holds something and closes no farther. '
        '0: its position alone tells',
        low=0.0,
        high=1e6,
    )

    # Search

    solver: str = parameter('lm', 'local method', choices=tuple(METHODS))
    position_tolerance: float = parameter(1e-4, 'position error below which a goal is solved [m]', low=1e-12, high=1.0)
    direction_tolerance: float = parameter(
        1e-3, 'direction error below which a goal is solved [rad]', low=1e-12, high=math.pi
    )
    restarts: int = parameter(1000, 'maximum number of random restarts', low=0, high=1_000_000)
    time_budget: float = parameter(
        0.05,
        'maximum search time per goal [s]. A goal that continues no stream has up to 20 times as much',
        low=1e-4,
        high=10.0,
    )
    random_seed: int = parameter(0, 'seed of the random restarts', low=0, high=2**31 - 1)
    direction_weight: float = parameter(
        0.0,
        'weight of the direction error for unreachable goals [m/rad]. With 0 the position has strict priority',
        low=0.0,
    )

    def check_search(self) -> None:
        """Raise InputError for a weight that the method does not support."""
        if self.direction_weight and self.solver != 'lm':
            raise InputError(
                f'parameter direction_weight must be 0 for solver {self.solver}: it is supported by lm only'
            )

    def search(self) -> dict[str, Any]:
        """Return the arguments of IkSolver besides the arm."""
        return {
            'method': self.solver,
            'position_tolerance': self.position_tolerance,
            'direction_tolerance': self.direction_tolerance,
            'restarts': self.restarts,
            'time_budget': self.time_budget,
            'random_seed': self.random_seed,
            'direction_weight': self.direction_weight or None,
        }

    # Goal

    on_unreachable: str = parameter(
        'auto',
        'what the arm does if it cannot meet a goal: "closest" moves to the closest '
        'configuration, "hold" stays where it is, "auto" holds if the joints are measured and '
        'the position cannot be met, and otherwise moves to the closest configuration',
        choices=('auto', 'closest', 'hold'),
    )
    follow_goals: bool = parameter(
        True,
        'whether a stream of goals is followed as one moving goal. If false, the arm stops at every goal',
    )
    smoothing: float = parameter(
        0.04,
        'time constant with which a moving goal is followed [s]. Larger values are smoother and lag more',
        low=0.01,
        high=2.0,
    )
    path_corners: str = parameter(
        'stop',
        'corners of goal_path: "stop" stops at each pose, "blend" rounds the corner between two lines',
        choices=('stop', 'blend'),
    )
    path_blend: float = parameter(
        0.02,
        'distance from a corner within which a blended path may leave the lines [m]',
        low=1e-4,
        high=10.0,
    )
    path_direction: str = parameter(
        'keep',
        'tool direction along goal_path: "keep" uses that of the poses, "free" lets it change',
        choices=('keep', 'free'),
    )
    path_partial: bool = parameter(
        False, 'whether the feasible part of a goal_path is executed instead of rejecting the path'
    )
    path_speed: float = parameter(
        0.0, 'speed limit of the tool point along goal_path [m/s]. 0 means no limit', low=0.0, high=100.0
    )
    goal_timeout: float = parameter(
        1.0,
        'how old, or how far in the future, the stamp of a goal may be [s]. A zero stamp is always accepted',
        low=1e-3,
    )

    # Teleop

    command_in_type: str = parameter(
        'unitless',
        'unit of twists and joint velocities: "unitless" values from -1 to 1 are multiplied by '
        'the scales, "speed_units" are m/s and rad/s',
        choices=('unitless', 'speed_units'),
    )
    scale_linear: float = parameter(0.4, 'tool speed of a unitless twist of 1 [m/s]', low=0.0, high=10.0)
    scale_rotational: float = parameter(0.8, 'turn rate of a unitless twist of 1 [rad/s]', low=0.0, high=100.0)
    scale_joint: float = parameter(
        0.5, 'joint speed of a unitless joint velocity of 1 [rad/s or m/s]', low=0.0, high=100.0
    )
    position_scale: float = parameter(
        1.0, 'ratio of tool motion to operator motion while the clutch is closed', low=1e-3, high=100.0
    )
    incoming_command_timeout: float = parameter(
        0.1,
        'time without teleoperation commands after which the arm brakes [s]',
        low=1e-3,
        high=10.0,
    )
    clutch: str = parameter(
        'required',
        '"required": poses from teleoperation move the tool only while ~/enable holds the clutch '
        'closed. "none": the poses are absolute, from the first one near the tool until the '
        'first message on ~/enable',
        choices=('required', NO_CLUTCH),
    )
    clutch_timeout: float = parameter(
        0.5, 'time without "true" on ~/enable after which the clutch opens [s]', low=0.01, high=10.0
    )

    # Output, motion and checks

    output: str = parameter(
        'joint_states',
        'destination of the commands: joint_states, joint_trajectory, position_commands or '
        'follow_joint_trajectory. joint_states can be listed besides one of the others',
        read_only=True,
    )
    controller: str = parameter(
        '',
        'name of the controller, such as arm_controller, which precedes the name of the topic or '
        'action. If it is empty, there is no prefix',
        read_only=True,
    )
    controller_joints: tuple[str, ...] = parameter(
        ('',),
        'joints of the controller in its order, including those that are not part of the arm. '
        "The default [''] means the joints of the arm",
        read_only=True,
    )
    publish_rate: float = parameter(100.0, 'setpoints per second [Hz]', low=1.0, high=1000.0)
    speed_scaling: float = parameter(0.5, 'fraction of the URDF velocity limits that is used', low=0.001, high=1.0)
    goal_speed: float = parameter(
        1.0, 'share of speed_scaling for the next motion; 1 again once no arm has moved for 3 s', low=0.001, high=1.0
    )
    max_acceleration: float = parameter(5.0, 'acceleration limit of every revolute joint [rad/s^2]', low=0.01, high=1e4)
    max_jerk: float = parameter(
        50.0, 'jerk limit of every revolute joint [rad/s^3]. Stops may exceed it four times', low=0.01, high=1e6
    )
    max_linear_acceleration: float = parameter(
        1.0, 'acceleration limit of every prismatic joint [m/s^2]', low=0.001, high=1e4
    )
    max_linear_jerk: float = parameter(
        10.0, 'jerk limit of every prismatic joint [m/s^3]. Stops may exceed it four times', low=0.001, high=1e6
    )
    joint_limits_file: str = parameter(
        '',
        "path of a joint_limits.yaml in MoveIt's format. It can only tighten the limits of the URDF",
        read_only=True,
    )
    joint_limit_margins: tuple[float, ...] = parameter(
        (0.0,),
        'distance that joints keep from their position limits [rad, m]. A single value applies to every joint',
    )
    max_tool_speed: float = parameter(
        0.0,
        'speed limit of the tool point [m/s]. 0 means no limit',
        low=0.0,
        high=100.0,
    )
    max_tool_turn_rate: float = parameter(
        0.0,
        'limit of the angular velocity of the tip [rad/s]. A joint that only rolls the tool may '
        'use a third of it. 0 means no limit',
        low=0.0,
        high=100.0,
    )
    workspace: tuple[float, ...] = parameter(
        (0.0,) * 6,
        'box that the tool point must not leave: minimum x, y, z, then maximum x, y, z in the '
        'base frame [m]. Six zeros mean the reach of the arm',
        size=6,
    )
    self_collision: str = parameter(
        'auto',
        'whether goals and motions with self-collision are rejected. "auto" does that if coal is '
        'installed and the description has collision shapes',
        choices=('auto', 'true', 'false'),
    )
    mesh_path: str = parameter('', 'folder of meshes for collision shapes, in addition to installed ROS packages')
    srdf_file: str = parameter('', 'path of an SRDF file with further pairs of links that are not checked')
    home: tuple[float, ...] = parameter(
        (0.0,),
        'joint positions of ~/home [rad, m], clipped to the limits. A single value applies to every joint',
    )
    wait_for_measured: str = parameter(
        'auto',
        'whether no command is sent before every joint of the arm has been measured. "auto" '
        'waits with any output but joint_states, and with joint_states if that topic is remapped '
        'or measured_joint_states has a publisher',
        choices=('auto', 'true', 'false'),
    )
    measured_timeout: float = parameter(
        1.0, 'age of the newest measurement at which the arm stops [s]. 0 means never', low=0.0, high=3600.0
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
        'how far a measured revolute joint may be from its target when it counts as arrived '
        '[rad]. Within 0.01 rad it arrives at once, otherwise after a second',
        low=1e-4,
        high=10.0,
    )
    linear_arrival_tolerance: float = parameter(0.001, 'the same for prismatic joints [m]', low=1e-5, high=10.0)
    hand_guiding_timeout: float = parameter(60.0, 'maximum duration of hand guiding [s]', low=1.0, high=3600.0)
    accept_other_sessions: bool = parameter(
        False, 'whether goals from pages and programs of another ik_demo or ros2 launch are accepted'
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
                raise InputError(f'parameter {name} must be one number, or one per joint, got an empty list')

    @property
    def velocity_share(self) -> float:
        """The fraction of the velocity limits of joints that is used."""
        return self.speed_scaling * self.goal_speed

    def gripper(self, arm: Arm) -> Gripper | None:
        """Return the gripper that an arm carries, None without one. Raises InputError if the arm has no such joint."""
        return gripper_of(arm, self.gripper_joint, self.gripper_positions)

    def tool_rates(self) -> tuple[float, float]:
        """Return the limits of the tool [m/s, rad/s], infinite where there is none."""
        return self.max_tool_speed or math.inf, self.max_tool_turn_rate or math.inf

    def listed_joints(self, arm_joints: tuple[str, ...]) -> tuple[str, ...]:
        """Return the joints of the controller in its order, for the joints of an arm."""
        return arm_joints if self.controller_joints == ('',) else self.controller_joints

    @property
    def uses_controller(self) -> bool:
        """Whether a controller carries out the commands, of listed_joints only."""
        return bool(set(self.output.replace(',', ' ').split()) - {'joint_states'})

    def bounds(self) -> tuple[object, ...]:
        """Return what decides the position and velocity limits of a robot."""
        links = (self.base_link, self.tip_link) if any(self.joint_limit_margins) else ()
        return self.joint_limits_file, self.joint_limit_margins, links

    def same_model(self, other: ArmSettings) -> bool:
        """Whether both settings build the same ArmModel."""
        return self._model_parts() == other._model_parts()

    def _model_parts(self) -> tuple[object, ...]:
        collision = self.self_collision, self.mesh_path, self.srdf_file
        gripper = self.gripper_joint, self.gripper_positions
        return self.tool(), self.search(), self.home, self.bounds(), collision, gripper


# Parameters that every tool has of its own, such as left.tip_link.
OF_TOOL = (
    'base_link',
    'tip_link',
    'tool_axis',
    'tool_point',
    'gripper_joint',
    'gripper_positions',
    'gripper_squeeze',
    'gripper_effort',
    'home',
    'controller',
    'controller_joints',
    'workspace',
)
ONE = ('',)  # the names of tools without the parameter tools
NAME = re.compile(r'[A-Za-z]\w*', re.ASCII)  # so that topics can begin with it


@dataclasses.dataclass(frozen=True)
class RobotSettings:
    """general: the parameters without a tool. own: by tool, the values of OF_TOOL; empty with one tool.

    arms: by tool, the parameters of its arm; one tool has no name.
    """

    general: ArmSettings
    own: Mapping[str, Mapping[str, Any]]
    arms: Mapping[str, ArmSettings] = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        arms = {'': self.general}
        if self.own:
            arms = {tool: self._of(tool, values) for tool, values in self.own.items()}
        object.__setattr__(self, 'arms', arms)

    def _of(self, tool: str, values: Mapping[str, Any]) -> ArmSettings:
        try:
            return dataclasses.replace(self.general, **values)
        except InputError as error:
            raise InputError(f'tool {tool}: {error}') from None

    def changed(self, values: Mapping[str, Any]) -> RobotSettings:
        """Return the settings with other values by parameter; unknown ones are ignored. Raises InputError."""
        known = {field.name for field in dataclasses.fields(self.general)}
        general = {name: value for name, value in values.items() if name in known}
        own = {
            tool: {name: values.get(f'{tool}.{name}', value) for name, value in mine.items()}
            for tool, mine in self.own.items()
        }
        return RobotSettings(dataclasses.replace(self.general, **general), own)

    def same_models(self, other: RobotSettings) -> bool:
        """Whether both settings build the same models of the same tools."""
        return self.arms.keys() == other.arms.keys() and all(
            arm.same_model(other.arms[tool]) for tool, arm in self.arms.items()
        )


def tool_names(tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in the parameter tools, none with one tool. Raises InputError for unusable names."""
    names = () if tools == ONE else tools
    for name in names:
        if not NAME.fullmatch(name) or names.count(name) > 1:
            raise InputError(
                'parameter tools must be different names of letters, digits and _, beginning with a letter, '
                f'got {list(names)}'
            )
    return names
