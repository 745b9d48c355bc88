# SPDX-License-Identifier: Apache-2.0
"""The options of arm.launch.py, ik_demo and make: one table, with the same names everywhere."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ik_node.checks import AXES
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError, join_names
from ik_node.files import anything, fields, mapping_of, optional, parse_yaml, read_file
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.model.tree import Tool, Tree
from ik_node.servos.ports import EMULATED
from ik_node.servos.settings import ServoSettings
from ik_node.share import SUFFIX, share_path, shipped_robots
from ik_node.solver.solver import IkSolver
from ik_node.tracks import NO_TRACK, TRACKS, place_roll, place_track, plane_axes

URDF, CONFIG = share_path('urdf'), share_path('config')
ROBOTS = shipped_robots()
SECTIONS = ('/**', '/**/ik_node', '/ik_node', 'ik_node')  # of a parameter file that ik_node reads
NODES = optional(
    fields(
        dict.fromkeys(SECTIONS, optional(fields({'ros__parameters': optional(mapping_of(anything))}, others=True))),
        others=True,
    )
)
TOOL_PARAMETERS = ('tip_link', 'tool_axis', 'tool_point')


def tools_file(name: str) -> Path | None:
    """Return the parameter file with the tools of a shipped robot, None if it has one tool."""
    path = CONFIG / f'{name}.yaml'
    return path if name in ROBOTS and path.exists() else None


ARMS = tuple(name for name in ROBOTS if tools_file(name) is None)  # with one tool


def description_path(given: str) -> Path:
    """Return the absolute path of a description: given is that or a robot in urdf/.

    Raises InputError.
    """
    if given in ROBOTS:
        return URDF / f'{given}{SUFFIX}'
    path = Path(given).expanduser().absolute()
    if not path.is_file():
        raise InputError(
            f'description_file {given}: the file {path} does not exist. Robots shipped with ik_node: '
            f'{join_names(ROBOTS)}'
        )
    return path


def tools_in(files: Iterable[Path]) -> dict[str, Tool]:
    """Return the tools by name that parameter files define for ik_node, none if they define no `tools`.

    The last definition counts, as for ROS; a parameter without a tool is the default of all tools. Raises
    InputError.
    """
    values: dict[str, Any] = {}
    for file in files:
        values |= _parameters(file)
    tools: dict[str, Tool] = {}
    for name in filter(None, values.get('tools') or ()):
        tip, axis, point = (values.get(f'{name}.{parameter}', values.get(parameter)) for parameter in TOOL_PARAMETERS)
        if not tip:
            raise InputError(f'{name}.tip_link is missing: every one of the tools needs its tip link')
        tools[name] = Tool(tip, axis or Tool.axis, point or Tool.point)
    return tools


def _parameters(file: Path) -> dict[str, Any]:
    """Return the parameters of ik_node in a parameter file, nested names joined by dots."""

    def check(name: str, content: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for section, node in (NODES(name, content) or {}).items():
            found[section] = _joined('', (node or {}).get('ros__parameters') or {})
        return {key: value for section in SECTIONS for key, value in found.get(section, {}).items()}

    found: dict[str, Any] = read_file(file, 'ROS parameter file', check, parse_yaml)
    return found


def _joined(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _joined(f'{prefix}{name}.', value)
        else:
            found[f'{prefix}{name}'] = value
    return found


CHOICES = (NO_TRACK, *TRACKS)
RESTARTS = 20  # enough for placing a track


def check_tracks(tracks: Sequence[str], tools: Sequence[str]) -> None:
    """Raise InputError unless tracks are one for all tools or one for each. tools: empty for one tool."""
    for track in tracks:
        if track not in CHOICES:
            raise InputError(f'track must be one of {", ".join(CHOICES)}, got {track!r}')
    if len(tracks) not in (1, len(tools)):
        allowed = f'one track, or one for each of the tools {join_names(tools)}' if tools else 'one track'
        raise InputError(f'track must be {allowed}, got {len(tracks)}: {" ".join(tracks)}')


def placed(arm: Arm, track: str) -> dict[str, Any]:
    """Return the parameters of ik_goals for a track that the arm can follow; without one, no track."""
    if track == NO_TRACK:
        return {'track': NO_TRACK}
    solver = IkSolver(arm, restarts=RESTARTS)
    place = place_track(solver, track)
    if place is None:
        return {'track': NO_TRACK}
    centre, direction = list(place.centre), list(place.direction)
    roll = place_roll(solver, track, place)
    return {'track': track, 'centre': centre, 'size': place.size, 'direction': direction, 'roll': roll}


def placed_by_tool(robot: Robot, tools: Mapping[str, Tool], tracks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the parameters of ik_goals by tool, in the frame of the root link.

    Each limb can follow its track while the joints that it shares with others are at mid-range. tracks: as
    check_tracks demands.
    """
    tree = Tree(robot, tools)
    shared = tree.shared(tuple(tools))
    rest = dict(zip(tree.joint_names, tree.middle.tolist(), strict=True))
    found = {}
    for number, (name, tool) in enumerate(tools.items()):
        track = tracks[number % len(tracks)]
        frame = {
            'frame': robot.root,
            'tool_axis': np.asarray(tool.axis, float).tolist(),
            'tool_point': np.asarray(tool.point, float).tolist(),
        }
        joints = tree.arms[name].joint_names[: shared[name]]
        link = robot.joints[joints[-1]].child if joints else robot.root
        own = placed(Arm(robot, tool.tip_link, tool.axis, tool.point, link), track)
        if own['track'] != NO_TRACK:
            T = robot.link_pose(link, rest)
            own['centre'] = (T[:3, :3] @ own['centre'] + T[:3, 3]).tolist()
            turned = T[:3, :3] @ np.column_stack((plane_axes(own['direction'])[0], own['direction']))
            own['direction'] = turned[:, 1].tolist()
            x, y = plane_axes(own['direction'])
            own['roll'] += math.atan2(turned[:, 0] @ y, turned[:, 0] @ x)
        found[name] = frame | own
    return found


PARAMS_FILE = share_path('config', 'ik_node.yaml')
YES_OR_NO = ('true', 'false', 'True', 'False')
NO_SIMULATION = 'none'
LEADER_NAMESPACE, LEADER_TOPIC = 'leader', 'topic'
SEED = 'seed_arm'  # the default centre of ik_goals suits this arm


class Option(NamedTuple):
    """An argument of arm.launch.py and, if it is in GROUPS, an option of ik_demo and a variable of make.

    choices: None for any text. words: ik_demo takes several.
    """

    default: str
    text: str
    choices: tuple[str, ...] | None = None
    words: bool = False


def _parameter(settings: type, name: str, empty: str, default: str = '') -> Option:
    """Return the option that sets a parameter of a node. empty: what it is then."""
    about = settings.__dataclass_fields__[name].metadata  # type: ignore[attr-defined]
    text = about['text'] if default else f'{about["text"].partition("; empty:")[0]}; empty: {empty}'
    return Option(default, text, ('', *about['choices']) if about['choices'] else None)


IN_FILE = 'as in params_file'
OF_DRIVER = 'as in params_file, or the default of ik_servos'
ARGUMENTS = {
    'description_file': Option(
        '',
        f'a .urdf or .xacro file, or one of the robots shipped with ik_node: {", ".join(ROBOTS)}; empty: '
        f'with serial_port the one that profile names, else {SEED}',
    ),
    'xacro_args': Option('', "arguments of the xacro file, such as 'prefix:=left_ gripper:=true'"),
    'base_link': Option('', 'link in whose frame goals are; empty: the root link'),
    'tip_link': Option(
        '',
        'link that carries the tool; empty: tool0, a frame between fingers, the end of the longest chain or '
        'the link that carries the fingers',
    ),
    'tool_axis': Option(
        '',
        'direction in which the tool points, in the frame of the tip link: '
        f"{', '.join(AXES)} or numbers such as '0 0.6 0.8'; empty: {IN_FILE}",
        words=True,
    ),
    'tool_point': Option(
        '', f"tool point in the frame of the tip link [m], such as '0 0 0.1'; empty: {IN_FILE}", words=True
    ),
    'params_file': Option(str(PARAMS_FILE), 'parameters of the nodes of this package; other arguments override them'),
    'namespace': Option('', 'namespace of every node and topic, including tf: one for each arm'),
    'use_sim_time': Option('false', 'take the time from /clock', YES_OR_NO),
    'rviz': Option('true', 'start RViz', YES_OR_NO),
    'marker': Option(
        'auto',
        'start a marker in RViz that drags the goal; auto: with RViz, if interactive_markers is installed',
        ('auto', *YES_OR_NO),
    ),
    'viewer': Option('false', 'start the browser viewer; it prints the URL of its page', YES_OR_NO),
    'page_port': Option('', f'TCP port of the page of the viewer; empty: {IN_FILE}, or 8080'),
    'host': Option(
        '',
        'network address of the page; 0.0.0.0 is every address of this machine, as for a phone; '
        f'empty: {IN_FILE}, or 127.0.0.1',
    ),
    'mesh_path': Option('', f'folder of meshes to display; empty: that of the description, or {IN_FILE}'),
    'shadows': Option(
        '',
        'draw shadows and reflections on the page; empty: if this machine has a graphics processor',
        ('', 'true', 'false'),
    ),
    'real': Option(
        'false',
        'the arm is real: its driver publishes joint_states, and ik_node sends it commands on joint_commands',
        YES_OR_NO,
    ),
    'sim': Option(
        NO_SIMULATION,
        'simulate the arm in MuJoCo behind a trajectory controller, which publishes joint_states',
        (NO_SIMULATION, 'mujoco'),
    ),
    'serial_port': Option(
        '',
        "serial port of an arm with servos on a bus: starts its driver; 'auto': the only port; 'emulated': "
        'servos without an arm',
    ),
    'profile': _parameter(ServoSettings, 'profile', '', default='so101'),
    'torque': Option('true', 'switch the torque of these servos on, where the arm is', YES_OR_NO),
    'torque_limit': _parameter(ServoSettings, 'torque_limit', OF_DRIVER),
    'on_exit': _parameter(ServoSettings, 'on_exit', OF_DRIVER),
    'calibration': _parameter(ServoSettings, 'calibration', OF_DRIVER),
    'zero_from': _parameter(ServoSettings, 'zero_from', OF_DRIVER),
    'zeros': _parameter(ServoSettings, 'zeros', OF_DRIVER),
    'speed_scaling': _parameter(ArmSettings, 'speed_scaling', IN_FILE),
    'leader': Option(
        '',
        'serial port of a second arm, which a hand moves and the arm follows: starts its driver, without torque, and '
        f"ik_leader; '{EMULATED}': servos without an arm, which {LEADER_NAMESPACE}/joint_commands moves; 'topic': any "
        f'other arm that publishes {LEADER_NAMESPACE}/joint_states',
    ),
    'leader_profile': Option('', 'servo profile of the leader; empty: profile'),
    'leader_description': Option(
        '', 'description of the leader, as description_file; empty: that of its profile, or of the same arm'
    ),
    'gui': Option('false', 'start joint_state_publisher_gui; its sliders set joint goals', YES_OR_NO),
    'track': Option(
        NO_TRACK,
        f'curve along which the goal moves ({", ".join(CHOICES)}), or one for each tool such as '
        "'circle figure_eight'; its speed: as in params_file",
        words=True,
    ),
    'track_centre': Option('', "centre of the curve in the base link [m], such as '0.2 0 0.04'", words=True),
    'track_size': Option('', 'radius of the curve, or half the length of a line or an eight [m]'),
}
ROBOT, MOTION, PAGE = 'robot', 'motion', 'page in the browser'
GROUPS = {
    ROBOT: ('description_file', 'tip_link', 'tool_axis', 'tool_point', 'base_link', 'params_file', 'sim'),
    MOTION: ('track', 'track_centre', 'track_size', 'speed_scaling'),
    PAGE: ('page_port', 'host', 'mesh_path', 'shadows'),
    'real arm with servos': (
        *('serial_port', 'profile', 'torque', 'torque_limit', 'on_exit'),
        *('calibration', 'zero_from', 'zeros'),
    ),
    'another arm that leads it': ('leader', 'leader_profile', 'leader_description'),
}
TEXTS_OF_DEMO = {  # where they differ from those of arm.launch.py
    'page_port': 'TCP port of the page; default: 8080',
    'tool_axis': 'direction in which the tool points, in the frame of the tip link: x, y, z, -x (as --tool-axis=-x) or '
    f"numbers such as '0 0.6 0.8'; default: {IN_FILE}",
    'track': f'curve along which the goal moves ({", ".join(CHOICES)}), or one for each tool; its speed: {IN_FILE}; '
    'default: circle, but none for a real arm',
}
GROUP_OF = {name: title for title, names in GROUPS.items() for name in names}
DEMO = tuple(GROUP_OF)


def add_options(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Add the options of ik_demo; those that are not given are None, but for page_port. Return their groups."""
    groups = {title: parser.add_argument_group(title) for title in GROUPS}
    for name in DEMO:
        _, text, choices, words = ARGUMENTS[name]
        more: dict[str, Any] = {} if choices else {'metavar': name.rpartition('_')[2].upper()}
        if words:
            more |= {'nargs': '+'}
        if name == 'sim':
            more = {'nargs': '?', 'const': 'mujoco'}
        elif name == 'page_port':  # ik_demo checks it before it starts the viewer
            more |= {'default': '8080'}
        groups[GROUP_OF[name]].add_argument(
            f'--{name.replace("_", "-")}',
            choices=[choice for choice in choices if choice] if choices else None,
            help=TEXTS_OF_DEMO.get(name, text.replace('empty:', 'default:')),
            **more,
        )
    return groups


def given_options(options: argparse.Namespace) -> dict[str, str]:
    """Return the value of every argument of arm.launch.py for options that add_options has added."""
    given = {name: value for name in DEMO if (value := getattr(options, name)) is not None}
    texts = {name: ' '.join(value) if isinstance(value, list) else value for name, value in given.items()}
    xacro = shlex.join(f'{name}:={value}' for name, value in options.xacro_args.items())
    return {name: one.default for name, one in ARGUMENTS.items()} | texts | {'xacro_args': xacro}
