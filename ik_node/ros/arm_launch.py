"""The arguments of arm.launch.py and the nodes that they start. Does not import launch packages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ik_node.checks import AXES, read_axis
from ik_node.errors import IkError, InputError, listed
from ik_node.extras import require
from ik_node.model.arm import Arm
from ik_node.model.description import load_description, read_from
from ik_node.model.meshes import mesh_folder
from ik_node.model.robot import Robot
from ik_node.model.urdf import read_urdf
from ik_node.ros.share import PACKAGE, share_path
from ik_node.tracks.curves import TRACKS
from ik_node.tracks.settings import NO_TRACK

SHARE = share_path('launch').parent
ARM_SUFFIX = '.urdf.xacro'
ARMS = sorted(path.name[: -len(ARM_SUFFIX)] for path in (SHARE / 'urdf').glob(f'*{ARM_SUFFIX}'))
PARAMS_FILE = SHARE / 'config' / 'ik_node.yaml'
RVIZ_FILE = SHARE / 'config' / 'ik_node.rviz'
YES_OR_NO = ('true', 'false', 'True', 'False')
FRAME_RATE = 60.0  # [Hz] of robot_state_publisher; its default of 20 looks jerky in RViz
CAMERA_DISTANCE, CAMERA_HEIGHT = 1.6, 0.45  # of RViz, in reaches of the arm
NO_SIMULATION = 'none'
PLAIN_REACH = 0.85  # [m], if it is not known

# name: (default, description, choices or None for any text)
REAL_NAMES = (('joint_states', 'joint_commands'), ('measured_joint_states', 'joint_states'))
ARGUMENTS: dict[str, tuple[str, str, tuple[str, ...] | None]] = {
    'description_file': (
        'seed_arm',
        f'Path of a .urdf or .xacro file, or one of the arms shipped with ik_node: {", ".join(ARMS)}',
        None,
    ),
    'xacro_args': ('', "Arguments for the xacro file, such as 'prefix:=left_ gripper:=true'", None),
    'base_link': ('', 'Link that goals are relative to; empty: the root link', None),
    'tip_link': (
        '',
        'Link that carries the tool; empty: tool0, a frame between fingers or the end of the longest chain',
        None,
    ),
    'tool_axis': (
        '',
        f"Axis of the tool in the tip frame: {', '.join(AXES)} or numbers such as '0 0.6 0.8'; "
        'empty: as in params_file',
        None,
    ),
    'tool_point': (
        '',
        "Tool point in the tip frame [m], such as '0 0 0.1'; empty: as in params_file",
        None,
    ),
    'params_file': (
        str(PARAMS_FILE),
        'Parameters of the nodes of this package; launch arguments override it',
        None,
    ),
    'namespace': ('', 'Namespace of every node and topic, including tf: one for each arm', None),
    'use_sim_time': ('false', 'Take the time from /clock', YES_OR_NO),
    'rviz': ('true', 'Start RViz', YES_OR_NO),
    'viewer': ('false', 'Start the browser viewer on http://127.0.0.1:8080', YES_OR_NO),
    'real': (
        'false',
        'A driver publishes joint_states: ik_node reads them and sends commands on joint_commands',
        YES_OR_NO,
    ),
    'sim': (
        NO_SIMULATION,
        'Simulate the arm in MuJoCo behind a trajectory controller, which publishes joint_states',
        (NO_SIMULATION, 'mujoco'),
    ),
    'gui': ('false', 'Start joint_state_publisher_gui; its sliders set joint goals', YES_OR_NO),
    'track': (
        NO_TRACK,
        'Curve along which the goal moves; its speed and direction: as in params_file',
        (NO_TRACK, *TRACKS),
    ),
    'track_centre': ('', "Centre of the curve in the base link [m], such as '0.2 0 0.04'", None),
    'track_size': ('', 'Radius of the curve, or half the length of a line or an eight [m]', None),
}


@dataclass(frozen=True)
class Start:
    """A node to start. asked_by: the argument that requests it; empty if it always starts.

    parameters: by name; a str stays a string even if YAML would read it as a number. files: parameter files.
    """

    package: str
    executable: str
    parameters: Mapping[str, Any]
    files: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    asked_by: str = ''
    ends_all: bool = False


@dataclass(frozen=True)
class Plan:
    """What to start. rviz_config: the text of a file that RViz gets as its configuration."""

    namespace: str
    starts: list[Start] = field(default_factory=list)
    rviz_config: str = ''


def plan(given: Mapping[str, str]) -> Plan:
    """Return the nodes for the values of all ARGUMENTS. Raises IkError for values that no node accepts."""
    given = {name: given[name].strip() for name in ARGUMENTS}
    wanted = {name for name, value in given.items() if value.lower() == 'true'}
    path = description_path(given['description_file'])
    text = load_description(path, xacro_args(given['xacro_args']))
    with read_from(path):
        robot = read_urdf(text)
    files = (str(existing_file('params_file', given['params_file'])),)
    links = {name: given[name] for name in ('base_link', 'tip_link') if given[name]}
    tool: dict[str, Any] = {}
    if given['tool_axis']:
        tool['tool_axis'] = list(read_axis('tool_axis', given['tool_axis']))
    if given['tool_point']:
        tool['tool_point'] = numbers('tool_point', given['tool_point'], 3)
    arm = checked_arm(robot, links, tool, known=Path(files[0]) == PARAMS_FILE)
    # One tf tree for each namespace, so that several arms of the same model can run at once.
    tf = (('/tf', 'tf'), ('/tf_static', 'tf_static'))
    time = {'use_sim_time': 'use_sim_time' in wanted}

    simulated = given['sim'] != NO_SIMULATION
    if simulated:
        require('mujoco', 'sim:=mujoco')
    if simulated and 'real' in wanted:
        raise InputError(f'real:=true and sim:={given["sim"]} exclude each other')
    swapped = REAL_NAMES if 'real' in wanted else ()
    output = {'output': 'joint_trajectory'} if simulated else {}

    def own(name: str, parameters: dict[str, Any], **options: Any) -> Start:
        return Start(PACKAGE, name, {**time, **parameters}, files, **options)

    def other(name: str, parameters: dict[str, Any], **options: Any) -> Start:
        return Start(name, name, {**time, **parameters}, **options)

    starts = [
        other(
            'robot_state_publisher',
            {'robot_description': text, 'publish_frequency': FRAME_RATE},
            remappings=tf,
        ),
        own('ik_node', {**links, **tool, **output}, remappings=(*tf, *swapped), ends_all=True),
    ]
    if simulated:
        starts.append(own('ik_plant', {}))
    config = ''
    if 'rviz' in wanted:
        config = rviz_config(robot.root, arm.reach if arm else PLAIN_REACH)
        starts.append(other('rviz2', {}, remappings=tf, asked_by='rviz:=true'))
    if 'viewer' in wanted:
        folder = None if given['description_file'] in ARMS else mesh_folder(path, text)
        meshes = {'mesh_path': str(folder)} if folder else {}
        starts.append(own('ik_viewer', {**links, **tool, **meshes}))
    if 'gui' in wanted:
        sliders = (('joint_states', 'goal_joints'),)
        starts.append(other('joint_state_publisher_gui', {}, remappings=sliders, asked_by='gui:=true'))
    if given['track'] != NO_TRACK:
        track: dict[str, Any] = {'track': given['track'], 'frame': given['base_link'] or robot.root}
        if given['track_centre']:
            track['centre'] = numbers('track_centre', given['track_centre'], 3)
        if given['track_size']:
            (track['size'],) = numbers('track_size', given['track_size'], 1)
        starts.append(own('ik_goals', {**track, **tool}))
    return Plan(given['namespace'], starts, config)


def checked_arm(robot: Robot, links: Mapping[str, str], tool: Mapping[str, Any], known: bool) -> Arm | None:
    """Return the arm that the nodes will use, None if it depends on the parameter file. Raises IkError.

    known: the parameter file is the shipped one, so it does not define the arm.
    """
    # The parameter file may name a tip link where no default is unique.
    try:
        return Arm(robot, **links, **tool)
    except IkError:
        if known or 'tip_link' in links:
            raise
        base = links.get('base_link')
        if base is not None and base not in robot.links:
            raise InputError(
                f'base_link "{base}" does not exist; links: {listed(robot.links, base)}'
            ) from None
        return None


def check_installed(starts: Iterable[Start]) -> None:
    """Raise InputError, with the remedy, if a ROS package of starts is not installed."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    for start in starts:
        try:
            get_package_prefix(start.package)
        except (PackageNotFoundError, OSError):  # OSError: no ROS environment at all
            need = f'{start.asked_by} needs' if start.asked_by else 'the launch file needs'
            debian = f'ros-{os.environ.get("ROS_DISTRO", "jazzy")}-{start.package.replace("_", "-")}'
            raise InputError(
                f'{need} the ROS package {start.package}, which is not installed: sudo apt install {debian}'
            ) from None


def rviz_config(frame: str, reach: float) -> str:
    """Return the RViz configuration with the fixed frame and a camera distance for the reach [m]."""
    config = yaml.safe_load(RVIZ_FILE.read_text(encoding='utf-8'))
    manager = config['Visualization Manager']
    manager['Global Options']['Fixed Frame'] = frame
    view = manager['Views']['Current']
    view['Distance'] = round(CAMERA_DISTANCE * reach, 3)
    view['Focal Point'] = {'X': 0.0, 'Y': 0.0, 'Z': round(CAMERA_HEIGHT * reach, 3)}
    return str(yaml.safe_dump(config, sort_keys=False))


def description_path(given: str) -> Path:
    """Return the path of a description file, or of the shipped arm of that name."""
    if given in ARMS:
        return SHARE / 'urdf' / f'{given}{ARM_SUFFIX}'
    try:
        return existing_file('description_file', given)
    except InputError as error:
        raise InputError(f'{error}. Arms shipped with ik_node: {", ".join(ARMS)}') from None


def existing_file(name: str, given: str) -> Path:
    """Return the absolute path of a file, relative to the folder of the caller. Raises InputError."""
    path = Path(given).expanduser().absolute()
    if not path.is_file():
        raise InputError(f'{name}:={given}: the file {path} does not exist')
    return path


def xacro_args(given: str) -> dict[str, str]:
    """Return the mappings of 'name:=value name:=value'. Raises InputError."""
    try:
        pairs = [item.split(':=', 1) for item in shlex.split(given)]
    except ValueError:  # an unbalanced quotation mark
        pairs = [[]]
    if any(len(pair) != 2 or not pair[0] for pair in pairs):
        raise InputError(f"xacro_args must be like 'prefix:=left_ gripper:=true', got '{given}'")
    return dict(pairs)


def numbers(name: str, given: str, count: int) -> list[float]:
    """Return count numbers from text such as '0 0 1' or '[0, 0, 1]'. Raises InputError."""
    try:
        found = [float(part) for part in given.strip('[]()').replace(',', ' ').split()]
    except ValueError:
        found = []
    if len(found) != count:
        raise InputError(f"{name} must be {count} number{'s' * (count > 1)}, got '{given}'")
    return found
