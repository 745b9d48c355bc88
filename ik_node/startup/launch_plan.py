# SPDX-License-Identifier: Apache-2.0
"""The programs for a robot, their parameters and the view of RViz: for arm.launch.py and for ik_demo."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from ik_node.checks import Array, read_axis
from ik_node.errors import IkError, InputError, join_names, quoted
from ik_node.extras import require
from ik_node.model.arm import Arm
from ik_node.model.meshes import mesh_folder
from ik_node.model.robot import Robot
from ik_node.model.tree import Tool, Tree
from ik_node.model.urdf.description import load_description, read_from, xacro_args
from ik_node.model.urdf.reader import read_urdf
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.ports import EMULATED, the_port
from ik_node.share import PACKAGE, share_path
from ik_node.tracks import NO_TRACK

from .arguments import (
    ARGUMENTS,
    LEADER_NAMESPACE,
    LEADER_TOPIC,
    NO_SIMULATION,
    PARAMS_FILE,
    ROBOTS,
    SEED,
    check_tracks,
    description_path,
    placed,
    placed_by_tool,
    tools_file,
    tools_in,
)

FILE = share_path('config') / 'ik_node.rviz'
MARKER = 'Interactive Markers Namespace'  # of the display that shows markers to drag

# topics of a robot with one tool, and what they are for a tool of several
TOOL_TOPICS = {
    'ik_node/markers': 'ik_node/{}/markers',
    'ik_goals/markers': '{}/ik_goals/markers',
    'goal_point': '{}/goal_point',
}
PLAIN_REACH = 0.85  # [m], of an arm that is not known

# What the camera has to show at the start, as spheres with these radii in reaches of the arm.
AROUND_SHOULDER, AROUND_TOOL, AROUND_LINK = 0.7, 0.35, 0.1

# Tangents of half the angles of view: RViz has 45 degrees vertically, and of its window of 1280 x 860 the
# scene gets at least 840 x 720.
TAN_UP = float(np.tan(np.radians(22.5)))
TAN_RIGHT = TAN_UP * 840.0 / 720.0


def has_graphics() -> bool:
    """Whether this machine has a graphics processor, without which shadows make the page slow."""
    return any(Path('/dev').glob('dri/renderD*')) or Path('/dev/nvidia0').exists()


class Sphere(NamedTuple):
    """A centre (3,) in the root link and a radius [m]."""

    centre: Array
    radius: float


def rviz_config(robot: Robot, arms: Mapping[str, Arm], marker: bool) -> str:
    """Return the configuration as text.

    arms: by tool; an empty name: the only one; none: not known. Topics of one tool are replaced by those of
    each. marker: goals can be dragged.
    """
    config = yaml.safe_load(FILE.read_text(encoding='utf-8'))
    manager = config['Visualization Manager']
    tools = [name for name in arms if name]
    if tools:
        for kind in ('Displays', 'Tools'):
            manager[kind] = [copy for entry in manager[kind] for copy in for_tools(entry, tools)]
        config['Panels'].append(tool_properties(tools))
    manager['Global Options']['Fixed Frame'] = robot.root
    for display in manager['Displays']:
        if MARKER in display:
            display['Enabled'] = display['Value'] = marker
    view = manager['Views']['Current']
    focus, distance = framed(shown(robot, arms), view['Yaw'], view['Pitch'])
    view['Distance'] = round(distance, 3)
    view['Focal Point'] = dict(zip('XYZ', np.round(focus, 3).tolist(), strict=True))
    return str(yaml.safe_dump(config, sort_keys=False))


def for_tools(entry: dict[str, Any], tools: list[str]) -> list[dict[str, Any]]:
    """Return an entry of RViz, or one for each tool of the robot if its topic is that of a tool."""
    topic = entry.get('Topic', {})
    if MARKER in entry:
        named = [{**entry, MARKER: f'{tool}/{entry[MARKER]}'} for tool in tools]
    elif topic.get('Value') in TOOL_TOPICS:
        pattern = TOOL_TOPICS[topic['Value']]
        named = [{**entry, 'Topic': {**topic, 'Value': pattern.format(tool)}} for tool in tools]
    else:
        return [entry]
    for copy, tool in zip(named, tools, strict=True):
        if 'Name' in entry:
            copy['Name'] = f'{entry["Name"]} ({tool})'
    return named


def tool_properties(tools: list[str]) -> dict[str, Any]:
    """Return the panel that shows the topic of each Publish Point: RViz gives all these buttons one name."""
    opened = [f'/Publish Point{number}' for number in range(1, len(tools) + 1)]
    return {
        'Class': 'rviz_common/Tool Properties',
        'Name': 'Tool Properties',
        'Expanded': [*opened, *(f'{each}/Topic1' for each in opened)],
        'Splitter Ratio': 0.5,
    }


def shown(robot: Robot, arms: Mapping[str, Arm]) -> list[Sphere]:
    """Return what the camera has to show: where arms begin, and links and tools at the start."""
    movable = [joint for joint in robot.joints.values() if joint.movable and joint.mimic is None]
    start = {joint.name: min(max(0.0, joint.lower), joint.upper) for joint in movable}
    poses = robot.link_poses(start)
    reach = max((arm.reach for arm in arms.values()), default=PLAIN_REACH)
    spheres = [Sphere(pose[:3, 3], AROUND_LINK * reach) for pose in poses.values()]
    if not arms:
        spheres.append(Sphere(np.zeros(3), AROUND_SHOULDER * reach))
    for arm in arms.values():
        shoulder = poses[robot.joints[arm.joint_names[0]].child][:3, 3]
        tip = poses[arm.tip_link]
        spheres.append(Sphere(shoulder, AROUND_SHOULDER * reach))
        for point in (np.zeros(3), arm.tool_point):
            spheres.append(Sphere(tip[:3, 3] + tip[:3, :3] @ point, AROUND_TOOL * arm.reach))
    return spheres


def framed(spheres: list[Sphere], yaw: float, pitch: float) -> tuple[Array, float]:
    """Return focal point (3,) and distance [m] of RViz's orbiting camera that just show all spheres.

    yaw, pitch: where it looks from [rad].
    """
    back = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    right = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    up = np.cross(back, right)
    centres = np.array([sphere.centre for sphere in spheres])
    radii = np.array([sphere.radius for sphere in spheres])
    depth = -centres @ back
    # Each side of the view is a plane through the camera: how far the spheres push it out, and how far back
    # the camera has to be for both sides of a pair.
    centre, nearest = [], np.inf
    for axis, tangent in ((right, TAN_RIGHT), (up, TAN_UP)):
        margin = radii * np.hypot(1.0, tangent)
        upper = float((centres @ axis - tangent * depth + margin).max())
        lower = float((centres @ axis + tangent * depth - margin).min())
        centre.append(0.5 * (upper + lower))
        nearest = min(nearest, (lower - upper) / (2.0 * tangent))
    middle = float(depth.mean())
    return centre[0] * right + centre[1] * up - middle * back, middle - nearest


FRAME_RATE = 60.0  # [Hz] of robot_state_publisher; its default of 20 looks jerky in RViz
FOR_ONE_TOOL = ('base_link', 'tool_axis', 'tool_point', 'gui', 'track_centre', 'track_size')
OF_DRIVER = ('on_exit', 'calibration', 'zero_from', 'zeros')  # that ik_servos takes as they are
PLACING = 'placing the track in the workspace (slower on a first start, while the solver is being compiled)'
REAL_NAMES = (('joint_states', 'joint_commands'), ('measured_joint_states', 'joint_states'))

# One tf tree for each namespace, so that several arms of the same model can run at once.
TF = (('/tf', 'tf'), ('/tf_static', 'tf_static'))


@dataclass(frozen=True)
class NodeSpec:
    """A node to start. requested_by: the argument that requests it; empty if it always starts.

    parameters: by name; a str stays a string even if YAML would read it as a number. files: parameter files.
    namespace: within that of the plan.
    """

    package: str
    executable: str
    parameters: Mapping[str, Any]
    files: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    requested_by: str = ''
    ends_all: bool = False
    namespace: str = ''


@dataclass(frozen=True)
class LaunchPlan:
    """What to start. description: of the robot. rviz_config: the text of a file for RViz, empty without RViz.

    tools: their names, none if the robot has one without a name.
    """

    namespace: str
    programs: list[NodeSpec]
    description: str
    tools: tuple[str, ...] = ()
    rviz_config: str = ''


def launch_plan(given: Mapping[str, str], report: Callable[[str], None] = lambda _: None) -> LaunchPlan:
    """Return the programs for the values of all ARGUMENTS. Raises IkError for values that no node accepts.

    report: is called with sentences on findings and on steps that take long.
    """
    values = {name: given[name].strip() for name in ARGUMENTS}
    old = given.get('port', '').strip()  # of earlier versions; launch accepts every name
    if old and old not in (values['serial_port'], values['page_port']):
        raise InputError(f'port:={old} is now serial_port:={old}')
    planner = LaunchPlanner(values | {'description_file': values['description_file'] or default_robot(values)}, report)
    programs = [
        *planner.moving(),
        *planner.leader(),
        *planner.markers(),
        *planner.rviz(),
        *planner.viewer(),
        *planner.sliders(),
        *planner.tracks(),
    ]
    return LaunchPlan(given['namespace'], programs, planner.text, tuple(planner.tools), planner.rviz_config)


class LaunchPlanner:
    """The programs for the values of all ARGUMENTS, by subject."""

    def __init__(self, given: Mapping[str, str], report: Callable[[str], None]) -> None:
        self._given, self._report = given, report
        self._enabled = {name for name, value in given.items() if value.lower() == 'true'}
        self._path = description_path(given['description_file'])
        self.text = load_description(self._path, xacro_args(given['xacro_args']))
        with read_from(self._path):
            self._robot = read_urdf(self.text)
        self.tools, self._files = tools_of(given)
        self._tracks = given['track'].split()
        check_tracks(self._tracks, list(self.tools))
        self._simulated = given['sim'] != NO_SIMULATION
        if self._simulated:
            require('mujoco', 'a simulated arm')
        if self._simulated and 'real' in self._enabled:
            raise InputError(f'real and sim ({given["sim"]}) exclude each other')
        self._driven = bool(given['serial_port'])
        if self._driven and self._simulated:
            raise InputError(f'serial_port ({given["serial_port"]}) and sim ({given["sim"]}) exclude each other')
        if self._driven:
            require('serial', 'a servo bus')
            read_profile(given['profile']).check_described(self._robot.joints)
        self._links = {name: given[name] for name in ('base_link', 'tip_link') if given[name]}
        self._tool: dict[str, Any] = {}
        if given['tool_axis']:
            self._tool['tool_axis'] = list(read_axis('tool_axis', given['tool_axis']))
        if given['tool_point']:
            self._tool['tool_point'] = numbers('tool_point', given['tool_point'], 3)
        self._known = given['params_file'] == str(PARAMS_FILE)
        self._arm: Arm | None = None
        if self.tools:
            Tree(self._robot, self.tools)  # raises what is wrong with them
        else:
            self._arm = checked_arm(self._robot, self._links, self._tool, self._known)
        around = given['namespace'].strip('/')
        self._root = f'/{around}' if around else ''
        self._marker = 'marker' in self._enabled
        if given['marker'] == 'auto':
            self._marker = 'rviz' in self._enabled and marker_possible()
        self.rviz_config = ''

    @property
    def _real(self) -> bool:
        """Whether a driver publishes joint_states and receives commands."""
        return self._driven or 'real' in self._enabled

    def _own(self, name: str, parameters: dict[str, Any], **options: Any) -> NodeSpec:
        time = {'use_sim_time': 'use_sim_time' in self._enabled}
        return NodeSpec(PACKAGE, name, {**time, **parameters}, self._files, **options)

    def _other(self, name: str, parameters: dict[str, Any], **options: Any) -> NodeSpec:
        time = {'use_sim_time': 'use_sim_time' in self._enabled}
        return NodeSpec(name, name, {**time, **parameters}, **options)

    def moving(self) -> Iterator[NodeSpec]:
        """Yield the nodes that display, move and simulate the robot."""
        yield self._other(
            'robot_state_publisher',
            {'robot_description': self.text, 'publish_frequency': FRAME_RATE},
            remappings=TF,
        )
        swapped = REAL_NAMES if self._real else ()
        more: dict[str, Any] = {'output': 'joint_trajectory'} if self._simulated else {}
        if self._given['speed_scaling']:
            (more['speed_scaling'],) = numbers('speed_scaling', self._given['speed_scaling'], 1)
        yield self._own('ik_node', {**self._links, **self._tool, **more}, remappings=(*TF, *swapped), ends_all=True)
        if self._driven:
            given = self._given['serial_port']
            port = the_port('') if given == 'auto' else given
            servos: dict[str, Any] = {'serial_port': port, 'profile': self._given['profile']}
            servos |= {'description': str(self._path), 'xacro_args': self._given['xacro_args']}
            servos |= {'torque_at_start': 'torque' in self._enabled}
            servos |= {name: self._given[name] for name in OF_DRIVER if self._given[name]}
            if self._given['torque_limit']:
                (servos['torque_limit'],) = numbers('torque_limit', self._given['torque_limit'], 1)
            yield self._own('ik_servos', servos)
        if self._simulated:
            yield self._own('ik_plant', {})

    def leader(self) -> Iterator[NodeSpec]:
        """Yield the driver of an arm that a hand moves, and what lets it lead."""
        given, port = self._given, self._given['leader']
        if not port:
            return
        if self.tools:
            raise InputError('leader is for robots with one tool; start ik_leader with its parameter tool')
        profile = given['leader_profile'] or given['profile']
        robot = given['leader_description']
        if port != LEADER_TOPIC and not robot and (given['leader_profile'] or not self._driven):
            robot = read_profile(profile).robot
        path = str(description_path(robot)) if robot else ''  # empty: the same arm
        if port != LEADER_TOPIC:
            require('serial', 'a servo bus')
            servos = {'serial_port': port, 'profile': profile, 'torque_at_start': port == EMULATED}
            servos |= {'description': path or str(self._path), 'xacro_args': '' if path else given['xacro_args']}
            if given['zero_from']:
                servos['zero_from'] = given['zero_from']
            yield self._own('ik_servos', servos, namespace=LEADER_NAMESPACE)
        yield self._own('ik_leader', {'leader_description': path})

    def markers(self) -> Iterator[NodeSpec]:
        """Yield a marker for each tool that drags its goal in RViz."""
        if not self._marker:
            return
        if not marker_possible():
            raise InputError(_not_installed('marker:=true needs', 'interactive_markers'))
        for name, tool in self.tools.items():
            vectors = {'tool_axis': tool.axis, 'tool_point': tool.point}
            shown = {key: np.array(value, dtype=float).tolist() for key, value in vectors.items()}
            yield self._own('ik_marker', {'tip_link': tool.tip_link, **shown}, **marker_of(name, self._root))
        if not self.tools:
            yield self._own('ik_marker', {**self._links, **self._tool})

    def rviz(self) -> Iterator[NodeSpec]:
        """Yield RViz, and note its configuration."""
        if 'rviz' in self._enabled:
            arms = Tree(self._robot, self.tools).arms if self.tools else {}
            if self._arm is not None:
                arms = {'': self._arm}
            self.rviz_config = rviz_config(self._robot, arms, self._marker)
            yield self._other('rviz2', {}, remappings=TF, requested_by='rviz:=true')

    def viewer(self) -> Iterator[NodeSpec]:
        """Yield the browser viewer, which can change link lengths of a shipped robot without hardware."""
        if 'viewer' not in self._enabled:
            return
        shipped = self._given['description_file'] in ROBOTS
        folder = self._given['mesh_path'] or (not shipped and mesh_folder(self._path, self.text))
        page: dict[str, Any] = {'mesh_path': str(folder)} if folder else {}
        if self._given['host']:
            page['host'] = self._given['host']
        if self._given['shadows']:
            page['shadows'] = 'shadows' in self._enabled
        elif self._known and not has_graphics():
            page['shadows'] = False
        if self._given['page_port']:
            page['page_port'] = whole_number('page_port', self._given['page_port'])
        if shipped and not self._simulated and not self._real:
            page |= {'description_file': str(self._path), 'xacro_args': self._given['xacro_args']}
        yield self._own('ik_viewer', {**self._links, **self._tool, **page})

    def sliders(self) -> Iterator[NodeSpec]:
        """Yield the sliders that set joint goals."""
        if 'gui' in self._enabled:
            renamed = (('joint_states', 'goal_joints'),)
            yield self._other('joint_state_publisher_gui', {}, remappings=renamed, requested_by='gui:=true')

    def tracks(self) -> Iterator[NodeSpec]:
        """Yield a player for each tool that has a track."""
        if self._tracks == [NO_TRACK]:
            return
        everybody = (('joint_states', f'{self._root}/joint_states'),)
        if self.tools:
            self._report(PLACING)
            tracks = dict(zip(self.tools, self._tracks * len(self.tools), strict=False))
            for name, goals in placed_by_tool(self._robot, self.tools, self._tracks).items():
                if self._placed(goals, tracks[name], f'the tool {name}'):
                    yield self._own('ik_goals', goals, namespace=name, remappings=everybody)
            return
        (track,) = self._tracks
        goals = {'frame': self._given['base_link'] or self._robot.root, **self._tool}
        find_place = self._known and self._given['description_file'] != SEED
        goals |= track_at(self._given, track, self._arm if find_place else None, self._report)
        if self._placed(goals, track, 'this arm'):
            yield self._own('ik_goals', goals)

    def _placed(self, goals: Mapping[str, Any], track: str, who: str) -> bool:
        """Return whether there is a position for a track; report it if there is none."""
        if goals['track'] == NO_TRACK != track:
            self._report(
                f'no goal moves: no position was found where {who} can follow a {track} with the tool in one direction'
            )
        return goals['track'] != NO_TRACK


def default_robot(given: Mapping[str, str]) -> str:
    """Return the description of an arm for which none is given: with servos, that of their profile.

    Raises InputError if the profile names none.
    """
    if not given['serial_port']:
        return SEED
    profile = read_profile(given['profile'])
    if not profile.robot:
        raise InputError(
            f'ik_node has no description for profile {quoted(profile.name)}: give the URDF of the arm as '
            'description_file'
        )
    return profile.robot


def tools_of(given: Mapping[str, str]) -> tuple[dict[str, Tool], tuple[str, ...]]:
    """Return the tools by name, none if the robot has one without a name, and the parameter files.

    A shipped robot with several tools has a file with these, unless tip_link names one. Raises InputError.
    """
    file = Path(given['params_file']).expanduser().absolute()
    if not file.is_file():
        raise InputError(f'params_file {given["params_file"]}: the file {file} does not exist')
    files = [file]
    own = tools_file(given['description_file'])
    if own is not None and not given['tip_link']:
        files.insert(files[0] == PARAMS_FILE, own)  # the file of the user comes last: it overrides the others
    tools = tools_in(files)
    if tools:
        for name in FOR_ONE_TOOL:
            if given[name] != ARGUMENTS[name].default:
                raise InputError(
                    f'{name} is for robots with one tool; this one has the tools {join_names(tools)}. '
                    'Parameters '
                    f'of a tool, such as {next(iter(tools))}.tool_axis, are set in params_file'
                )
    return tools, tuple(map(str, files))


def track_at(given: Mapping[str, str], track: str, arm: Arm | None, report: Callable[[str], None]) -> dict[str, Any]:
    """Return the parameters of a track: where arguments want it, else where arm, if any, can follow it."""
    goals: dict[str, Any] = {'track': track}
    if arm is not None and not given['track_centre']:
        report(PLACING)
        goals |= placed(arm, track)
    if given['track_centre']:
        goals['centre'] = numbers('track_centre', given['track_centre'], 3)
    if given['track_size']:
        (goals['size'],) = numbers('track_size', given['track_size'], 1)
    return goals


def checked_arm(robot: Robot, links: Mapping[str, str], tool: Mapping[str, Any], known: bool) -> Arm | None:
    """Return the arm that the nodes will use, None if it depends on the parameter file. Raises IkError.

    known: the parameter file is the shipped one, so it does not define the arm.
    """
    # The parameter file may name a tip link where no default is unique.
    try:
        return Arm(robot, **links, **{'tool_axis': 'z', **tool})
    except IkError:
        if known or 'tip_link' in links:
            raise
        base = links.get('base_link')
        if base is not None and base not in robot.links:
            raise InputError(f'base_link "{base}" does not exist; links: {join_names(robot.links, base)}') from None
        return None


def check_installed(starts: Iterable[NodeSpec]) -> None:
    """Raise InputError, with the remedy, if a ROS package of starts is not installed."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    for start in starts:
        try:
            get_package_prefix(start.package)
        except (PackageNotFoundError, OSError):  # OSError: no ROS environment at all
            need = f'{start.requested_by} needs' if start.requested_by else 'the launch file needs'
            raise InputError(_not_installed(need, start.package)) from None


def _not_installed(need: str, package: str) -> str:
    debian = f'ros-{os.environ.get("ROS_DISTRO", "jazzy")}-{package.replace("_", "-")}'
    return f'{need} the ROS package {package}, which is not installed: sudo apt install {debian}'


def marker_possible() -> bool:
    """Whether ik_marker can run here."""
    return find_spec('interactive_markers') is not None


def marker_of(name: str, root: str) -> dict[str, Any]:
    """Return namespace and remappings of the marker of a tool, in a namespace of the robot such as /lab."""
    shared = (
        'joint_states',
        'robot_description',
        'ik_node/get_parameters',
        'ik_node/set_parameters_atomically',
    )
    remappings = [(each, f'{root}/{each}') for each in shared]
    for each in ('home', 'stop', 'resume', 'project_pose', 'projected_pose'):
        remappings.append((f'ik_node/{each}', f'{root}/ik_node/{name}/{each}'))
    return {'namespace': name, 'remappings': tuple(remappings)}


def whole_number(name: str, given: str) -> int:
    """Return the number in a text. Raises InputError."""
    try:
        return int(given)
    except ValueError:
        raise InputError(f"{name} must be a whole number, got '{given}'") from None


def numbers(name: str, given: str, count: int) -> list[float]:
    """Return count numbers from text such as '0 0 1' or '[0, 0, 1]'. Raises InputError."""
    try:
        found = [float(part) for part in given.strip('[]()').replace(',', ' ').split()]
    except ValueError:
        found = []
    if len(found) != count:
        raise InputError(f"{name} must be {count} number{'s' * (count > 1)}, got '{given}'")
    return found
