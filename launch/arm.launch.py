"""Show an arm in RViz and have it go where goal_pose says: ros2 launch ik_node arm.launch.py

Any arm: description_file:=my_arm.urdf tip_link:=gripper. All arguments: ros2 launch -s ik_node arm.launch.py
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from ik_node.errors import InputError
from ik_node.model.description import load_description, read_from
from ik_node.model.urdf import read_urdf

SHARE = Path(__file__).resolve().parents[1]
ARM_SUFFIX = '.urdf.xacro'
ARMS = sorted(path.name[: -len(ARM_SUFFIX)] for path in (SHARE / 'urdf').glob(f'*{ARM_SUFFIX}'))
TRACKS = ('none', 'circle', 'figure_eight', 'line', 'spiral')
YES_OR_NO = ('true', 'false', 'True', 'False')
AXES = {
    'x': [1.0, 0.0, 0.0],
    'y': [0.0, 1.0, 0.0],
    'z': [0.0, 0.0, 1.0],
    '-x': [-1.0, 0.0, 0.0],
    '-y': [0.0, -1.0, 0.0],
    '-z': [0.0, 0.0, -1.0],
}

# name: (default, description, choices or None for any text)
ARGUMENTS: dict[str, tuple[str, str, tuple[str, ...] | None]] = {
    'description_file': (
        'seed_arm',
        f'Path of a .urdf or .xacro file, or one of the arms that ik_node brings: {", ".join(ARMS)}',
        None,
    ),
    'xacro_args': ('', "What the xacro file asks for, such as 'prefix:=left_ gripper:=true'", None),
    'base_link': ('', 'Link that goals are relative to; empty: the root link', None),
    'tip_link': (
        '',
        'Link that carries the tool; empty: tool0, a frame between fingers or the end of the longest chain',
        None,
    ),
    'tool_axis': (
        '',
        "Axis of the tool in the tip frame: x, -x, y, -y, z, -z or numbers such as '0 0.6 0.8'; "
        'empty: as in params_file',
        None,
    ),
    'tool_point': (
        '',
        "Tool point in the tip frame [m], such as '0 0 0.1'; empty: as in params_file",
        None,
    ),
    'params_file': (
        str(SHARE / 'config' / 'ik_node.yaml'),
        'Parameters of the nodes of this package; the arguments here go before it',
        None,
    ),
    'namespace': ('', 'Namespace of every node and topic, tf too: one for each arm', None),
    'use_sim_time': ('false', 'Take the time from /clock', YES_OR_NO),
    'rviz': ('true', 'Start RViz', YES_OR_NO),
    'viewer': ('false', 'Start the browser viewer on http://127.0.0.1:8080', YES_OR_NO),
    'gui': ('false', 'Start joint_state_publisher_gui: its sliders are targets for the joints', YES_OR_NO),
    'track': ('none', 'Curve on which a goal travels; its speed and direction: as in params_file', TRACKS),
    'track_centre': ('', "Middle of the curve in the base link [m], such as '0.2 0 0.04'", None),
    'track_size': ('', 'Radius of the curve, or half the length of a line or an eight [m]', None),
}


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts the nodes once these have their values."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)
        for name, (default, text, choices) in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Node]:
    """Return the nodes that the arguments ask for. Raises IkError, which ros2 launch prints and ends."""
    given = {name: context.launch_configurations[name].strip() for name in ARGUMENTS}
    wanted = {name for name, value in given.items() if value.lower() == 'true'}
    path = description_path(given['description_file'])
    text = load_description(path, xacro_args(given['xacro_args']))
    with read_from(path):
        robot = read_urdf(text)
    if given['tip_link']:
        robot.chain(given['tip_link'], given['base_link'] or None)  # a wrong link is told before all starts
    params_file = str(existing_file('params_file', given['params_file']))
    sim_time = {'use_sim_time': 'use_sim_time' in wanted}
    # One tf tree for each namespace, so that arms of the same make can stand side by side.
    tf = [('/tf', 'tf'), ('/tf_static', 'tf_static')]

    def node(package: str, parameters: dict[str, Any], files: Sequence[str] = (), **options: Any) -> Node:
        options.setdefault('executable', package)
        return Node(
            package=package,
            namespace=given['namespace'],
            parameters=[*files, {**sim_time, **parameters}],
            output='screen',
            **options,
        )

    def own(name: str, parameters: dict[str, Any], **options: Any) -> Node:
        # With its name given, a node takes the parameters here before those of any section in the file.
        return node('ik_node', parameters, [params_file], executable=name, name=name, **options)

    links = {name: string(given[name]) for name in ('base_link', 'tip_link') if given[name]}
    tool: dict[str, Any] = {}
    if given['tool_axis']:
        tool['tool_axis'] = AXES.get(given['tool_axis']) or numbers('tool_axis', given['tool_axis'], 3)
    if given['tool_point']:
        tool['tool_point'] = numbers('tool_point', given['tool_point'], 3)
    # The default of 20 Hz looks jerky in RViz.
    state = {'robot_description': string(text), 'publish_frequency': 60.0}
    nodes = [
        node('robot_state_publisher', state, remappings=tf),
        own('ik_node', {**links, **tool}, remappings=tf, on_exit=Shutdown()),
    ]
    if 'rviz' in wanted:
        config = str(SHARE / 'config' / 'ik_node.rviz')
        nodes.append(node('rviz2', {}, arguments=['-d', config, '-f', robot.root], remappings=tf))
    if 'viewer' in wanted:
        meshes = {} if given['description_file'] in ARMS else {'mesh_path': string(str(path.parent))}
        nodes.append(own('ik_viewer', {**links, **tool, **meshes}))
    if 'gui' in wanted:
        nodes.append(node('joint_state_publisher_gui', {}, remappings=[('joint_states', 'goal_joints')]))
    if given['track'] != 'none':
        track: dict[str, Any] = {'track': given['track'], 'frame': string(given['base_link'] or robot.root)}
        if given['track_centre']:
            track['centre'] = numbers('track_centre', given['track_centre'], 3)
        if given['track_size']:
            (track['size'],) = numbers('track_size', given['track_size'], 1)
        nodes.append(own('ik_goals', {**track, **tool}))
    return nodes


def string(text: str) -> ParameterValue:
    """Return a parameter that stays a string even where YAML would read a number or a truth value."""
    return ParameterValue(text, value_type=str)


def description_path(given: str) -> Path:
    """Return the path of a description file, or of the shipped arm of that name."""
    if given in ARMS:
        return SHARE / 'urdf' / f'{given}{ARM_SUFFIX}'
    try:
        return existing_file('description_file', given)
    except InputError as error:
        raise InputError(f'{error}. Arms that ik_node brings: {", ".join(ARMS)}') from None


def existing_file(name: str, given: str) -> Path:
    """Return the absolute path of a file named from where ros2 launch was called. Raises InputError."""
    path = Path(given).expanduser().absolute()
    if not path.is_file():
        raise InputError(f'{name}:={given}: there is no file {path}')
    return path


def xacro_args(given: str) -> dict[str, str]:
    """Return the mappings of 'name:=value name:=value'. Raises InputError."""
    pairs = [item.split(':=', 1) for item in shlex.split(given)]
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
