"""ik_demo: start ik_node, ik_viewer and ik_goals for a robot, report what they do, and stop them.

A robot with several tools gets one ik_goals for each, in the namespace of the tool. With --sim the arm is
simulated by ik_plant, and ik_node commands it by trajectories. With --teleop the keys of this terminal move
the arm instead of ik_goals.

Everything stays on this machine: the nodes discover only nodes of the same host, the viewer listens on
127.0.0.1 and prints the URL of its page.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ik_node.checks import read_axis
from ik_node.errors import IkError, InputError, MissingError, listed
from ik_node.extras import EXTRAS, require
from ik_node.model.arm import Arm
from ik_node.model.meshes import mesh_folder
from ik_node.model.robot import Robot
from ik_node.model.tree import Tool, Tree
from ik_node.model.urdf.description import load_description, read_from
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.signal_flag import SignalFlag
from ik_node.startup.robots import ROBOTS, description_path, tools_file, tools_in
from ik_node.startup.tool_tracks import CHOICES, check_tracks, placed, placed_by_tool
from ik_node.tracks.settings import NO_TRACK

SEED = 'seed_arm'  # the default centre of ik_goals suits this arm
HOST = '127.0.0.1'
PATIENCE = 10.0  # seconds within which the nodes must shut down before they are killed
HEARD_EVERY = 5.0  # seconds between two reports of the same status
DOMAIN = 'ROS_DOMAIN_ID'
KEYS = 'ik_teleop'
PLACING = 'placing the track in the workspace (slower on a first start, while the solver is being compiled)'
FOR_ONE_TOOL = ('base_link', 'tool_axis', 'teleop')
SIMULATED = {'noise': 2e-4, 'latency': 0.005, 'droop': 0.005}  # [rad], [s], [rad]: a decent small arm


def say(message: str) -> None:
    """Print at once, also into a pipe."""
    print(f'ik_demo: {message}', flush=True)


@dataclass(frozen=True)
class Program:
    """A node to start, with its parameters by name and its parameter files, which these override."""

    name: str
    parameters: Mapping[str, Any]
    files: Sequence[Path] = ()
    namespace: str = ''


class Child:
    """A node in a separate process and session, so that it receives Ctrl-C only once, from here.

    ik_teleop stays in this session: otherwise it could not read the keys of the terminal.
    """

    def __init__(self, start: Program, folder: Path) -> None:
        self.name = start.name
        self.title = '/'.join(filter(None, (start.namespace, start.name)))
        file = folder / f'{self.title.replace("/", "_")}.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': dict(start.parameters)}}))
        arguments = [part for path in (*start.files, file) for part in ('--params-file', str(path))]
        if start.namespace:
            arguments += ['-r', f'__ns:=/{start.namespace}', '-r', 'joint_states:=/joint_states']
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'ik_node.start', start.name, '--ros-args', *arguments],
            start_new_session=start.name != KEYS,
        )

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Request its shutdown."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, until: float) -> None:
        """Wait for it until a time (time.monotonic); then kill it and its children."""
        try:
            self._process.wait(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            say(f'{self.title} did not shut down within {PATIENCE:g} s; killing it')
            with contextlib.suppress(ProcessLookupError):  # no group of its own
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def parse(args: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog='ik_demo', description=(__doc__ or '').split('\n', 1)[0])
    parser.add_argument(
        '--description-file', default=SEED, metavar='ROBOT',
        help=f'a .urdf or .xacro file, or one of {", ".join(ROBOTS)}; default: {SEED}',
    )  # fmt: skip
    parser.add_argument('--params-file', help='a parameter file with the tools of a robot with several')
    parser.add_argument('--base-link', default='', help='link that goals are relative to; default: the root')
    parser.add_argument('--tip-link', default='', help='link that carries the tool')
    parser.add_argument(
        '--tool-axis', nargs='+', metavar='AXIS',
        help='axis of the tool in the tip frame: x, y, z, --tool-axis=-x or like 0,0.6,0.8; default: z',
    )  # fmt: skip
    parser.add_argument(
        '--track', nargs='+', default=['circle'], metavar='TRACK',
        help=f'one for all tools or one for each, of {", ".join(CHOICES)}; default: circle',
    )  # fmt: skip
    parser.add_argument('--port', type=int, default=8080, help='of the browser viewer; default: 8080')
    parser.add_argument('--sim', action='store_true', help='simulate the arm in MuJoCo, behind a controller')
    parser.add_argument('--teleop', action='store_true', help='move the arm with the keys of this terminal')
    parser.add_argument('--no-viewer', action='store_true', help='start no browser viewer')
    return parser.parse_args(args)


def plan(options: argparse.Namespace) -> list[Program]:
    """Return the nodes to start. Raises IkError for an invalid robot."""
    path = description_path(options.description_file, '--description-file')
    text = load_description(path)
    with read_from(path):
        robot = read_urdf(text)
    page: dict[str, Any] = {'port': options.port, 'mesh_path': str(mesh_folder(path, text) or '')}
    if options.description_file in ROBOTS and not options.sim:  # only a picture: its links may change
        page['description_file'] = str(path)
    files = [] if options.tip_link else tool_files(options)
    tools = tools_in(files)
    check_tracks(options.track, tuple(tools))
    if tools:
        return _with_tools(options, robot, text, page, tools, files)
    if options.params_file is not None:
        raise InputError(
            f'--params-file {options.params_file} defines no tools, or --tip-link names the only one'
        )
    return _with_one_tool(options, robot, text, page)


def tool_files(options: argparse.Namespace) -> list[Path]:
    """Return the parameter files with the tools of a robot, none if it has one."""
    own = tools_file(options.description_file) if options.params_file is None else Path(options.params_file)
    return [] if own is None else [own.expanduser().absolute()]


def _with_tools(
    options: argparse.Namespace,
    robot: Robot,
    text: str,
    page: Mapping[str, Any],
    tools: Mapping[str, Tool],
    files: Sequence[Path],
) -> list[Program]:
    for name in FOR_ONE_TOOL:
        if getattr(options, name):
            raise InputError(
                f'--{name.replace("_", "-")} is for robots with one tool; {robot.name} has the tools '
                f'{listed(tools)}. Parameters such as {next(iter(tools))}.tool_axis are set in --params-file'
            )
    say(Tree(robot, tools).describe())
    nodes = _moving({}, text, options.sim, files)
    if not options.no_viewer:
        nodes.append(Program('ik_viewer', page, files))
    wanted = dict(zip(tools, options.track * len(tools), strict=False))
    say(PLACING)
    for name, goals in placed_by_tool(robot, tools, options.track).items():
        _say_if_off(goals, wanted[name], f'the tool {name}')
        nodes.append(Program('ik_goals', goals, namespace=name))
    return nodes


def _moving(tool: Mapping[str, Any], text: str, simulated: bool, files: Sequence[Path] = ()) -> list[Program]:
    """Return the node that moves a robot, and the one that simulates it if asked for."""
    if not simulated:
        return [Program('ik_node', {**tool, 'robot_description': text}, files)]
    return [
        Program('ik_node', {**tool, 'output': 'joint_trajectory', 'robot_description': text}, files),
        Program('ik_plant', {'robot_description': text, **SIMULATED}, files),
    ]


def _with_one_tool(
    options: argparse.Namespace, robot: Robot, text: str, page: Mapping[str, Any]
) -> list[Program]:
    axis = read_axis('tool_axis', ' '.join(options.tool_axis or ['z']))
    arm = Arm(robot, options.tip_link or None, axis, base_link=options.base_link or None)
    say(arm.describe())
    tool = {'tip_link': options.tip_link, 'base_link': options.base_link, 'tool_axis': list(axis)}
    nodes = _moving(tool, text, options.sim)
    if not options.no_viewer:
        nodes.append(Program('ik_viewer', {**tool, **page}))
    if options.teleop:
        return [*nodes, Program(KEYS, {})]
    (track,) = options.track
    goals = {'frame': arm.base_link, 'tool_axis': tool['tool_axis'], 'track': track}
    if options.description_file != SEED:
        say(PLACING)
        goals |= placed(arm, track)
        _say_if_off(goals, track, 'this arm')
    return [*nodes, Program('ik_goals', goals)]


def _say_if_off(goals: Mapping[str, Any], track: str, who: str) -> None:
    if goals['track'] == NO_TRACK != track:
        say(f'{who} cannot follow a {track} with a fixed direction at any of the places tried: no track')


def check_port(port: int) -> None:
    """Raise InputError if port is not available."""
    if not 0 < port < 65536:
        raise InputError(f'--port must be from 1 to 65535, got {port}')
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f'port {port} is not available ({error.strerror}); choose another one: --port {port + 1}, '
                f'or PORT={port + 1} with make'
            ) from None


class StatusPrinter:
    """What was printed last of one tool."""

    def __init__(self, tool: str) -> None:
        self._who = f'{tool}: ' if tool else ''
        self._said, self._count, self._next = '', 0, 0.0

    def hear(self, status: Any) -> None:
        """Print a status unless it is old news."""
        values = {pair.key: pair.value for pair in status.values}
        self._count += 1
        now = time.monotonic()
        word = f'{values.get("status")} {values.get("state")}'
        if now < self._next and word == self._said:
            return
        errors = ''
        if values.get('position_error', 'nan') != 'nan':  # of a goal for the tool
            errors = (
                f' ({1e3 * float(values["position_error"]):.3f} mm and '
                f'{float(values["direction_error"]):.5f} rad off; {self._count} goals so far)'
            )
        say(f'{self._who}{status.message}{errors}')
        self._said, self._next = word, now + HEARD_EVERY


class Listener:
    """Prints the status of the goals, at most every HEARD_EVERY seconds while it stays the same.

    tools: their names, empty for one without a name.
    """

    def __init__(self, tools: Sequence[str]) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticStatus
        from rclpy.signals import SignalHandlerOptions

        from ik_node.ros.qos import REPORTS

        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._rclpy = rclpy
        self._node = rclpy.create_node('ik_demo')
        for tool in tools or ('',):
            topic = f'ik_node/{tool}/status' if tool else 'ik_node/status'
            self._node.create_subscription(DiagnosticStatus, topic, StatusPrinter(tool).hear, REPORTS)

    def listen(self, seconds: float) -> None:
        """Listen for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._rclpy.spin_once(self._node, timeout_sec=left)

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_node()
        self._rclpy.utilities.try_shutdown()


def watch(children: list[Child], stop: SignalFlag, tools: Sequence[str]) -> int:
    """Report the status until a stop is requested or a child ends; return the exit code."""
    listener = Listener(tools)
    try:
        while not stop.is_set():
            for child in children:
                if child.exit_code == 0 and child.name == KEYS:
                    return 0
                if child.exit_code is not None:
                    say(f'{child.title} ended with exit code {child.exit_code}; stopping the others')
                    return 1
            listener.listen(0.2)
        return 0
    finally:
        listener.close()


def stop_all(children: list[Child]) -> bool:
    """Stop the children, the last first; return whether all ended without an error."""
    for child in reversed(children):
        child.stop()
    until = time.monotonic() + PATIENCE
    for child in children:
        child.wait(until)
    return all(child.exit_code == 0 for child in children)


def run(options: argparse.Namespace) -> int:
    """Start everything, and stop it again on request."""
    stop = SignalFlag()
    if not options.no_viewer:
        for package in EXTRAS['viewer']:
            require(package, 'ik_demo')
        check_port(options.port)
    if options.sim:
        require('mujoco', 'ik_demo --sim')
    nodes = plan(options)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop.set)
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if os.environ.get('ROS_DISTRO') == 'humble':  # knows only the older variable
        os.environ['ROS_LOCALHOST_ONLY'] = '1'
    say(f'ROS domain {os.environ.get(DOMAIN, "0")}, this machine only; Ctrl-C stops everything')
    children: list[Child] = []
    with tempfile.TemporaryDirectory(prefix='ik_demo_') as folder:
        try:
            for start in nodes:
                children.append(Child(start, Path(folder)))
                say(f'starting {children[-1].title}')
            tools = [start.namespace for start in nodes if start.namespace]
            code = watch(children, stop, tools)
        finally:
            say('stopping')
            well = stop_all(children)
    if code == 0 and not well:
        codes = ', '.join(f'{child.title} {child.exit_code}' for child in children)
        say(f'some nodes exited with an error, exit codes: {codes}')
        return 1
    say('stopped')
    return code


def main(args: Sequence[str] | None = None) -> int:
    """Run ik_demo."""
    try:
        return run(parse(args))
    except MissingError as error:
        print(f'error: {error}', file=sys.stderr)
        return 2
    except IkError as error:
        print(f'ik_demo: {error}', file=sys.stderr)
        return 1
