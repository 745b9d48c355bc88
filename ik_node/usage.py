# SPDX-License-Identifier: Apache-2.0
"""What each program does, in one sentence, and two examples of it: the beginning and the end of its --help."""

from __future__ import annotations

import shutil
import textwrap
from typing import NamedTuple


class Usage(NamedTuple):
    """does: one sentence. examples: commands by what they do."""

    does: str
    examples: dict[str, str]


USAGE = {
    'ik_demo': Usage(
        'Start an arm, its page in the browser, and a goal that moves along a circle; Ctrl-C ends everything.',
        {
            'try it, without an arm': 'ik_demo',
            'show the arm of a URDF, and wait for goals': 'ik_demo --description-file my_arm.urdf --track none',
        },
    ),
    'ik_goto': Usage(
        'Move the tool of a running arm, or its gripper, and wait until it is there; Ctrl-C stops the arm.',
        {
            'to x, y, z in metres, with the tool pointing down': 'ik_goto 0.4 0.1 0.2 --direction 0 0 -1',
            'close the gripper, if the arm has one': 'ik_goto --gripper 0',
        },
    ),
    'ik_stop': Usage(
        'Stop the arm, or every arm if you run several; ik_resume lets it move again.',
        {'stop': 'ik_stop', 'stop one tool of a robot with several': 'ik_stop --tool left'},
    ),
    'ik_resume': Usage(
        'Let the arm move again after a stop or a fault.',
        {'resume': 'ik_resume', 'resume one tool of a robot with several': 'ik_resume --tool left'},
    ),
    'ik_status': Usage(
        'Print what the arm is doing, and how the last goal went.',
        {'what the arm is doing': 'ik_status', 'of one tool of a robot with several': 'ik_status --tool left'},
    ),
    'ik_play': Usage(
        'Check a program of taught points, then run it on the arm; Ctrl-C stops the arm.',
        {
            'check the program, and move nothing': 'ik_play pick.yaml --check',
            'run it three times': 'ik_play pick.yaml --loops 3',
        },
    ),
    'ik_teleop': Usage(
        'Move the tool of a running arm with the keys of this terminal.',
        {
            'move the tool; the keys are printed': 'ik_teleop',
            'move one tool of a robot with several': 'ik_teleop --ros-args -p tool:=left',
        },
    ),
    'ik_leader': Usage(
        'Let an arm that a hand moves lead a running arm, joint by joint or, if it is of another make, by its tool.',
        {
            'an arm of the same make, whose joints are on leader/joint_states': 'ik_leader',
            'an arm of another make': 'ik_leader --ros-args -p leader_description:=other_arm.urdf -p scale:=1.5',
        },
    ),
    'ik_goals': Usage(
        'Send goals that move along a curve, such as a circle, to a running arm.',
        {
            'a circle of 5 cm about x, y, z in metres': (
                "ik_goals --ros-args -p centre:='[0.4, 0.0, 0.2]' -p size:=0.05"
            ),
            'a figure eight at 0.2 m/s': 'ik_goals --ros-args -p track:=figure_eight -p speed:=0.2',
        },
    ),
    'ik_node': Usage(
        'Wait for goals, compute the joint positions that meet them, and move the arm there within its limits.',
        {
            'an arm that is only displayed': 'ik_node --ros-args -p urdf_file:=my_arm.urdf',
            'with another tool link, at a fifth of its speed': (
                'ik_node --ros-args -p urdf_file:=my_arm.urdf -p tip_link:=gripper -p speed_scaling:=0.2'
            ),
        },
    ),
    'ik_viewer': Usage(
        'Show a running arm on a page in the browser, where you can drag its goal.',
        {
            'it prints the address of the page': 'ik_viewer',
            'for a phone, at port 8081': 'ik_viewer --ros-args -p host:=0.0.0.0 -p page_port:=8081',
        },
    ),
    'ik_marker': Usage(
        'Show the goal of a running arm in RViz, as a marker that you can drag.',
        {
            'the marker': 'ik_marker',
            'with the tool axis of an ik_node that has another one than z': (
                "ik_marker --ros-args -p tool_axis:='[1.0, 0.0, 0.0]'"
            ),
        },
    ),
    'ik_plant': Usage(
        'Simulate an arm and the controllers that a real one has, in MuJoCo.',
        {
            'the arm of a URDF': 'ik_plant --ros-args -p urdf_file:=my_arm.urdf',
            'with a sag of 0.01 rad, and noise': (
                'ik_plant --ros-args -p urdf_file:=my_arm.urdf -p droop:=0.01 -p noise:=0.0002'
            ),
        },
    ),
    'ik_servos': Usage(
        'Drive an arm with servos on a serial bus, such as an SO-101.',
        {
            'try it with emulated servos, without an arm': 'ik_servos --ros-args -p serial_port:=emulated',
            'a real arm, with a third of its torque': (
                'ik_servos --ros-args -p serial_port:=/dev/ttyACM0 -p torque_limit:=0.3'
            ),
        },
    ),
    'ik_servo_check': Usage(
        'Check an arm with servos on a serial bus; nothing moves or is written, unless an option says so.',
        {
            'try it with emulated servos, without an arm': 'ik_servo_check --serial-port emulated',
            'turn one joint of a real arm by 3 degrees': (
                'ik_servo_check --serial-port /dev/ttyACM0 --wiggle wrist_roll'
            ),
        },
    ),
    'ik_inspect': Usage(
        'Describe an arm: its joints, its limits, where it can go, and how many solutions its goals have.',
        {
            'an arm that comes with ik_node': 'ik_inspect so101_like',
            'your own, with link and axis of its tool': 'ik_inspect my_arm.urdf --tip-link gripper --tool-axis x',
        },
    ),
    'ik_solve': Usage(
        'Compute all joint positions that bring the tool of an arm to a position.',
        {
            'the tool points down': 'ik_solve seed_arm 0.4 0.1 0.2 --direction 0 0 -1',
            'any direction, as JSON for other programs': 'ik_solve my_arm.urdf 0.3 0 0.2 --json',
        },
    ),
    'ik_reach': Usage(
        'Draw where the tool of an arm can go, and in how many directions it can point there.',
        {
            'two planes, as a picture': 'ik_reach seed_arm',
            'the whole workspace, every 5 cm': 'ik_reach my_arm.urdf --volume --resolution 0.05',
        },
    ),
    'ik_batch': Usage(
        'Compute the joint positions for every row of a file of goals; run it again to continue after a stop.',
        {
            'goals.csv has the columns x, y, z [m]': 'ik_batch seed_arm goals.csv joints.csv',
            'with directions in other columns, and all solutions counted': (
                'ik_batch my_arm.urdf goals.csv joints.parquet --direction nx ny nz --count'
            ),
        },
    ),
    'ik_retarget': Usage(
        'Replace the tool poses of a recorded dataset by joint positions of an arm; run it again to continue.',
        {
            'a dataset of LeRobot': 'ik_retarget so101_like recorded retargeted --report report.json',
            'a table: the column take says which rows belong together': (
                'ik_retarget my_arm.urdf poses.csv retargeted.csv --episode take --fps 30'
            ),
        },
    ),
    'ik_calibrate': Usage(
        'Find out how an arm differs from its description, by touching the crosses of a printed sheet.',
        {
            'print the sheet': 'ik_calibrate my_arm.urdf --sheet sheet.pdf',
            'touch its crosses with the running arm, and write my_arm_calibrated.urdf': 'ik_calibrate my_arm.urdf',
        },
    ),
    'ik_place': Usage(
        'Find where to put the base of an arm so that its tool reaches all goals of a file.',
        {
            'on a table of 1 m': 'ik_place seed_arm goals.csv --x -0.5 0.5 --y -0.5 0.5',
            'on a rail, with a picture of each placement': (
                'ik_place my_arm.urdf goals.csv --rail 0 0 0 1 0 0 --output place'
            ),
        },
    ),
    'ik_export': Usage(
        'Write the solver of an arm as C, as a plugin of MoveIt, or as a web page; it then needs no Python.',
        {
            'a header of C, and a program that uses it': 'ik_export seed_arm --header arm.h',
            'a page to play with, for any browser': 'ik_export my_arm.urdf --html arm.html',
        },
    ),
}


def beginning(program: str) -> str:
    """Return what a program does, wrapped for the terminal."""
    return textwrap.fill(USAGE[program].does, max(shutil.get_terminal_size().columns - 2, 20))


def examples(program: str) -> str:
    """Return the examples of a program, as its help ends."""
    lines = [line for text, command in USAGE[program].examples.items() for line in (f'  # {text}', f'  {command}')]
    return '\n'.join(['Examples:', *lines])
