"""ik_demo: start ik_node, ik_viewer and ik_goals for one arm, report what they do, and stop them.

With --sim the arm is simulated by ik_plant, and ik_node commands it by trajectories. With --teleop the keys
of this terminal move the arm instead of ik_goals.

Everything stays on this machine: the nodes discover only nodes of the same host, the viewer listens on
127.0.0.1.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ik_node.checks import read_axis
from ik_node.errors import IkError, InputError, MissingError
from ik_node.extras import EXTRAS, require
from ik_node.model.arm import Arm
from ik_node.model.description import load_description, read_from
from ik_node.model.meshes import mesh_folder
from ik_node.ros.share import share_path
from ik_node.ros.signal_flag import SignalFlag
from ik_node.solver.solver import IkSolver
from ik_node.tracks.curves import TRACKS
from ik_node.tracks.placement import place_circle
from ik_node.tracks.settings import NO_TRACK

ARM = ('urdf', 'seed_arm.urdf.xacro')  # the default circle of ik_goals suits this arm
HOST = '127.0.0.1'
RESTARTS = 20  # enough for placing a circle
PATIENCE = 10.0  # seconds within which the nodes must shut down before they are killed
HEARD_EVERY = 5.0  # seconds between two reports of the same status
DOMAIN = 'ROS_DOMAIN_ID'
KEYS = 'ik_teleop'
SIMULATED = {'noise': 2e-4, 'latency': 0.005, 'droop': 0.005}  # [rad], [s], [rad]: a decent small arm


def say(message: str) -> None:
    """Print at once, also into a pipe."""
    print(f'ik_demo: {message}', flush=True)


class Child:
    """A node in a separate process and session, so that it receives Ctrl-C only once, from here.

    ik_teleop stays in this session: otherwise it could not read the keys of the terminal.
    """

    def __init__(self, name: str, parameters: dict[str, Any], folder: Path) -> None:
        self.name = name
        file = folder / f'{name}.yaml'
        file.write_text(yaml.safe_dump({name: {'ros__parameters': parameters}}))
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'ik_node.start', name, '--ros-args', '--params-file', str(file)],
            start_new_session=name != KEYS,
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
            say(f'{self.name} did not shut down within {PATIENCE:g} s; killing it')
            with contextlib.suppress(ProcessLookupError):  # no group of its own
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def parse(args: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog='ik_demo', description=(__doc__ or '').split('\n', 1)[0])
    parser.add_argument('--description-file', help='a .urdf or .xacro file; default: the seed arm')
    parser.add_argument('--base-link', default='', help='link that goals are relative to; default: the root')
    parser.add_argument('--tip-link', default='', help='link that carries the tool')
    parser.add_argument(
        '--tool-axis', nargs='+', default=['z'], metavar='AXIS',
        help='axis of the tool in the tip frame: x, y, z, --tool-axis=-x or like 0,0.6,0.8; default: z',
    )  # fmt: skip
    parser.add_argument('--track', choices=(NO_TRACK, *TRACKS), default='circle', help='default: circle')
    parser.add_argument('--port', type=int, default=8080, help='of the browser viewer; default: 8080')
    parser.add_argument('--sim', action='store_true', help='simulate the arm in MuJoCo, behind a controller')
    parser.add_argument('--teleop', action='store_true', help='move the arm with the keys of this terminal')
    parser.add_argument('--no-viewer', action='store_true', help='start no browser viewer')
    return parser.parse_args(args)


def plan(options: argparse.Namespace) -> list[tuple[str, dict[str, Any]]]:
    """Return name and parameters of every node to start. Raises IkError for an invalid arm."""
    tool_axis = read_axis('tool_axis', ' '.join(options.tool_axis))
    path = Path(options.description_file) if options.description_file else share_path(*ARM)
    tool = {
        'tip_link': options.tip_link,
        'base_link': options.base_link,
        'tool_axis': list(tool_axis),
    }
    text = load_description(path)
    with read_from(path):
        arm = Arm.from_urdf(
            text, options.tip_link or None, base_link=options.base_link or None, tool_axis=tool_axis
        )
    say(arm.describe())
    goals = {'frame': arm.base_link, 'tool_axis': tool['tool_axis'], 'track': options.track}
    if options.description_file and options.track != NO_TRACK and not options.teleop:
        goals |= _placed(arm)
    nodes = [('ik_node', {**tool, 'robot_description': text})]
    if options.sim:
        nodes[0][1]['output'] = 'joint_trajectory'
        nodes.append(('ik_plant', {'robot_description': text, **SIMULATED}))
    if not options.no_viewer:
        page = {'port': options.port, 'mesh_path': str(mesh_folder(path, text) or '')}
        nodes.append(('ik_viewer', {**tool, **page}))
    nodes.append((KEYS, {}) if options.teleop else ('ik_goals', goals))
    return nodes


def _placed(arm: Arm) -> dict[str, Any]:
    """Return parameters for a track that the arm can follow, or that turn the track off."""
    say('placing the track in the workspace (slower on a first start, while the solver is being compiled)')
    circle = place_circle(IkSolver(arm, restarts=RESTARTS))
    if circle is None:
        say('this arm cannot follow any of the circles tried with a fixed direction: the track is off')
        return {'track': NO_TRACK}
    return {'centre': list(circle.centre), 'size': circle.size, 'direction': list(circle.direction)}


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
                f'port {port} is not available ({error.strerror}); choose another one: --port {port + 1}'
            ) from None


def answers(port: int) -> bool:
    """Whether a server listens on port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((HOST, port)) == 0


class Listener:
    """Prints the status of the goals, at most every HEARD_EVERY seconds while it stays the same."""

    def __init__(self) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticStatus
        from rclpy.signals import SignalHandlerOptions

        from ik_node.ros.qos import REPORTS

        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._rclpy = rclpy
        self._node = rclpy.create_node('ik_demo')
        self._node.create_subscription(DiagnosticStatus, 'ik_node/status', self._hear, REPORTS)
        self._said = ''
        self._count = 0
        self._next = 0.0

    def listen(self, seconds: float) -> None:
        """Listen for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._rclpy.spin_once(self._node, timeout_sec=left)

    def _hear(self, status: Any) -> None:
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
        say(f'{status.message}{errors}')
        self._said, self._next = word, now + HEARD_EVERY

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_node()
        self._rclpy.utilities.try_shutdown()


def watch(children: list[Child], stop: SignalFlag, port: int | None) -> int:
    """Report the status until a stop is requested or a child ends; return the exit code."""
    listener = Listener()
    try:
        while not stop.is_set():
            for child in children:
                if child.exit_code == 0 and child.name == KEYS:
                    return 0
                if child.exit_code is not None:
                    say(f'{child.name} ended with exit code {child.exit_code}; stopping the others')
                    return 1
            if port is not None and answers(port):
                say(f'open http://{HOST}:{port} in a browser; Ctrl-C here stops everything')
                port = None
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
    say(f'ROS domain {os.environ.get(DOMAIN, "0")}, this machine only')
    children: list[Child] = []
    with tempfile.TemporaryDirectory(prefix='ik_demo_') as folder:
        try:
            for name, parameters in nodes:
                say(f'starting {name}')
                children.append(Child(name, parameters, Path(folder)))
            code = watch(children, stop, None if options.no_viewer else options.port)
        finally:
            say('stopping')
            well = stop_all(children)
    if code == 0 and not well:
        codes = ', '.join(f'{child.name} {child.exit_code}' for child in children)
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
