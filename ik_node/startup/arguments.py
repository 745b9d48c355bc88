# SPDX-License-Identifier: Apache-2.0
"""The arguments of arm.launch.py, which ik_demo fills in too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ik_node.checks import AXES
from ik_node.errors import InputError, join_names
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.model.tree import Tool, Tree
from ik_node.servos.calibration.profile import shipped_profiles
from ik_node.servos.calibration.zeros import ZERO_FROM
from ik_node.servos.settings import ON_EXIT
from ik_node.share import share_path
from ik_node.solver.solver import IkSolver
from ik_node.tracks import NO_TRACK, TRACKS, place_roll, place_track, plane_axes

SUFFIX = '.urdf.xacro'
URDF, CONFIG = share_path('urdf'), share_path('config')
ROBOTS = tuple(sorted(path.name.removesuffix(SUFFIX) for path in URDF.glob(f'*{SUFFIX}')))
SECTIONS = ('/**', '/**/ik_node', '/ik_node', 'ik_node')  # of a parameter file that ik_node reads
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
        tip, axis, point = (
            values.get(f'{name}.{parameter}', values.get(parameter)) for parameter in TOOL_PARAMETERS
        )
        if not tip:
            raise InputError(f'{name}.tip_link is missing: every one of the tools needs its tip link')
        tools[name] = Tool(tip, axis or Tool.axis, point or Tool.point)
    return tools


def _parameters(file: Path) -> dict[str, Any]:
    """Return the parameters of ik_node in a parameter file, nested names joined by dots."""
    try:
        sections = yaml.safe_load(file.read_text(encoding='utf-8')) or {}
        found: dict[str, Any] = {}
        for section in SECTIONS:
            found |= _joined('', (sections.get(section) or {}).get('ros__parameters') or {})
        return found
    except (AttributeError, OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f'cannot read {file} as a ROS parameter file: {" ".join(str(error).split())}'
        ) from None


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
        wanted = f'one track, or one for each of the tools {join_names(tools)}' if tools else 'one track'
        raise InputError(f'track must be {wanted}, got {len(tracks)}: {" ".join(tracks)}')


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


def placed_by_tool(
    robot: Robot, tools: Mapping[str, Tool], tracks: Sequence[str]
) -> dict[str, dict[str, Any]]:
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
ELSE_DRIVER = 'empty: as in params_file, or the default of ik_servos'
SEED = 'seed_arm'  # the default centre of ik_goals suits this arm

# name: (default, description, choices or None for any text)
ARGUMENTS: dict[str, tuple[str, str, tuple[str, ...] | None]] = {
    'description_file': (
        '',
        f'Path of a .urdf or .xacro file, or one of the robots shipped with ik_node: {", ".join(ROBOTS)}; '
        f'empty: with a serial_port the one that profile names, else {SEED}',
        None,
    ),
    'xacro_args': ('', "Arguments of the xacro file, such as 'prefix:=left_ gripper:=true'", None),
    'base_link': ('', 'Reference link of goals. If empty, the root link', None),
    'tip_link': (
        '',
        'Link that carries the tool. If empty, the first that exists of: tool0, a frame between '
        'the fingers, the end of the longest chain, the link that carries the fingers',
        None,
    ),
    'tool_axis': (
        '',
        f"Tool axis in the tip frame: {', '.join(AXES)} or numbers such as '0 0.6 0.8'. If empty, "
        'as in params_file',
        None,
    ),
    'tool_point': (
        '',
        "Tool point in the tip frame [m], such as '0 0 0.1'. If empty, as in params_file",
        None,
    ),
    'params_file': (
        str(PARAMS_FILE),
        'Parameter file for the nodes of this package; launch arguments override it',
        None,
    ),
    'namespace': ('', 'Namespace of every node and topic, including tf. Each arm needs its own', None),
    'use_sim_time': ('false', 'Take the time from /clock', YES_OR_NO),
    'rviz': ('true', 'Start RViz', YES_OR_NO),
    'marker': (
        'auto',
        'Start a marker that lets the goal be dragged in RViz. "auto" starts it with RViz if '
        'interactive_markers is installed',
        ('auto', *YES_OR_NO),
    ),
    'viewer': ('false', 'Start the browser viewer; it prints the URL of its page', YES_OR_NO),
    'page_port': ('', 'TCP port of that page. If empty, as in params_file, or 8080', None),
    'real': (
        'false',
        'A driver publishes joint_states: ik_node reads them and sends commands on joint_commands',
        YES_OR_NO,
    ),
    'sim': (
        NO_SIMULATION,
        'Simulate the arm in MuJoCo behind a trajectory controller that publishes joint_states',
        (NO_SIMULATION, 'mujoco'),
    ),
    'serial_port': (
        '',
        "Serial port of an arm with servos on a bus: starts its driver; 'auto': the only port; 'emulated': "
        'servos without an arm',
        None,
    ),
    'profile': (
        'so101',
        f'Servos of that arm: {", ".join(shipped_profiles())}, or the path of a file',
        None,
    ),
    'torque': ('true', 'Switch the torque of these servos on, where the arm is', YES_OR_NO),
    'torque_limit': ('', f'Share of the torque of these servos that may be used; {ELSE_DRIVER}', None),
    'on_exit': (
        '',
        'When the driver of these servos ends: hold the pose with torque, or release: lower the arm slowly, '
        f'then no torque; {ELSE_DRIVER}',
        ('', *ON_EXIT),
    ),
    'calibration': (
        '',
        "Source of their calibration: memory: the EEPROM of the servos; lerobot: also LeRobot's file of the "
        f'arm; or the path of that file; {ELSE_DRIVER}',
        None,
    ),
    'zero_from': ('', f'Zero of their joints; {ELSE_DRIVER}', ('', *ZERO_FROM)),
    'zeros': ('', f"Ticks of zero by joint, such as 'elbow_flex=2126'; {ELSE_DRIVER}", None),
    'speed_scaling': (
        '',
        'Share of the velocity limits that motions may use. If empty, as in params_file',
        None,
    ),
    'gui': ('false', 'Start joint_state_publisher_gui; its sliders set joint goals', YES_OR_NO),
    'track': (
        NO_TRACK,
        f'Curve along which the goal moves ({", ".join(CHOICES)}), or one for each tool such as '
        "'circle figure_eight'; its speed: as in params_file",
        None,
    ),
    'track_centre': ('', "Centre of the curve in the base link [m], such as '0.2 0 0.04'", None),
    'track_size': ('', 'Radius of the curve, or half the length of a line or an eight [m]', None),
}


def option_help(name: str) -> str:
    """Return the description of an argument as an option of a command line has it."""
    text = ARGUMENTS[name][1].replace('empty:', 'default:')
    return text[0].lower() + text[1:]
