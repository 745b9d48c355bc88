# SPDX-License-Identifier: Apache-2.0
"""The arguments of arm.launch.py, which ik_demo fills in too."""

from __future__ import annotations

from ik_node.checks import AXES
from ik_node.ros.servos.settings import ON_EXIT
from ik_node.servos.calibration.estimates import ZERO_FROM
from ik_node.servos.calibration.profile import shipped_profiles
from ik_node.share import share_path
from ik_node.startup.robots import ROBOTS
from ik_node.startup.tool_tracks import CHOICES
from ik_node.tracks.settings import NO_TRACK

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
        f'empty: with a port the one that profile names, else {SEED}',
        None,
    ),
    'xacro_args': ('', "Arguments for the xacro file, such as 'prefix:=left_ gripper:=true'", None),
    'base_link': ('', 'Reference link of goals; empty: the root link', None),
    'tip_link': (
        '',
        'Link that carries the tool; empty: tool0, a frame between fingers, the end of the longest chain or '
        'the link that carries the fingers',
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
        'Parameters of the nodes of this package; launch arguments override them',
        None,
    ),
    'namespace': ('', 'Namespace of every node and topic, including tf: one for each arm', None),
    'use_sim_time': ('false', 'Take the time from /clock', YES_OR_NO),
    'rviz': ('true', 'Start RViz', YES_OR_NO),
    'marker': (
        'auto',
        'Start a marker in RViz that drags the goal; auto: with RViz, if interactive_markers is installed',
        ('auto', *YES_OR_NO),
    ),
    'viewer': ('false', 'Start the browser viewer; it prints the URL of its page', YES_OR_NO),
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
    'port': (
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
    'torque_limit': ('', f'Share of their torque that may be used; {ELSE_DRIVER}', None),
    'on_exit': (
        '',
        'When their driver ends: hold the pose with torque, or release: lower the arm slowly, then no '
        f'torque; {ELSE_DRIVER}',
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
        'Share of the velocity limits that motions may use; empty: as in params_file',
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
