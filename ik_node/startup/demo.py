# SPDX-License-Identifier: Apache-2.0
"""ik_demo: start ik_node, ik_viewer and ik_goals for a robot, report what they do, and stop them.

A robot with several tools gets one ik_goals for each, in the namespace of the tool. With --sim the arm is
simulated by ik_plant, and ik_node commands it by trajectories. With --teleop the keys of this terminal move
the arm instead of ik_goals.

Everything stays on this machine: the nodes discover only nodes of the same host, the viewer listens on
127.0.0.1 and prints the URL of its page. Each ik_demo has a ROS domain of its own,
which ik_goto, ik_stop, ik_play and others find, unless ROS_DOMAIN_ID is set.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ik_node import console
from ik_node.arguments import PlainParser
from ik_node.console import SignalFlag
from ik_node.control.states import NEED_RESUME
from ik_node.errors import IkError, InputError, MissingError, join_names
from ik_node.extras import EXTRAS, require
from ik_node.ros.sessions import CALLS, DOMAIN, DOMAINS, SESSION, hang_up, session_in, take_domain
from ik_node.share import PACKAGE
from ik_node.tracks import NO_TRACK

from .arguments import MOTION, PAGE, add_options, given_options
from .launch_plan import LaunchPlan, NodeSpec, launch_plan, tools_of

OK = b'\0'  # of DiagnosticStatus


class StatusPrinter:
    """Prints what goals of one tool lead to, once until it changes: a stream of goals reports at 10 Hz."""

    def __init__(self, tool: str, say: Callable[[str], None]) -> None:
        self._say = say
        self._prefix = f'{tool}: ' if tool else ''
        self._stopped = False
        self._last = ''

    def on_status(self, status: Any) -> None:
        """Print a status unless ik_node logs it or it is a repetition."""
        values = {pair.key: pair.value for pair in status.values}
        word = f'{values.get("status")} {values.get("state")}'
        if not values.get('goal') or status.level != OK:  # in the log of ik_node, in the same terminal
            self._last = ''
            stopped = values.get('arm') in NEED_RESUME
            if stopped and not self._stopped:
                self._say(
                    f'{self._prefix}press Resume on the page, run ik_resume, or press c in ik_teleop, then give a goal'
                )
            self._stopped = stopped
            return
        if word == self._last:
            return
        errors = ''
        if values.get('position_error', 'nan') != 'nan':  # of a goal for the tool
            errors = (
                f' ({1e3 * float(values["position_error"]):.3f} mm and {float(values["direction_error"]):.5f} rad off)'
            )
        self._say(f'{self._prefix}{status.message}{errors}')
        self._last = word


class Listener:
    """Prints the status of the goals.

    tools: their names, empty for one without a name.
    """

    def __init__(self, tools: Sequence[str], say: Callable[[str], None]) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticStatus
        from rclpy.signals import SignalHandlerOptions

        from ik_node.ros.interfaces import LATCHED

        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._rclpy = rclpy
        self._node = rclpy.create_node('ik_demo')
        for tool in tools or ('',):
            topic = f'ik_node/{tool}/status' if tool else 'ik_node/status'
            self._node.create_subscription(DiagnosticStatus, topic, StatusPrinter(tool, say).on_status, LATCHED)

    def listen(self, seconds: float) -> None:
        """Listen for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._rclpy.spin_once(self._node, timeout_sec=left)

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_node()
        self._rclpy.utilities.try_shutdown()


PATIENCE = 10.0  # seconds within which the nodes must shut down before they are killed


class Child:
    """A program of this package in a separate process and session, so that Ctrl-C reaches it only from here.

    reads_keys: it stays in this session, otherwise it could not read the keys of the terminal.
    """

    def __init__(
        self,
        program: NodeSpec,
        more: Mapping[str, Any],
        folder: Path,
        reads_keys: bool = False,
        kept: socket.socket | None = None,
    ) -> None:
        """more: further parameters. folder: for its parameter file. kept: a socket that it keeps open too."""
        self.name = program.executable
        self.title = '/'.join(filter(None, (program.namespace, self.name)))
        file = folder / f'{self.title.replace("/", "_")}.yaml'
        parameters = {**program.parameters, **more}
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
        arguments = [part for path in (*program.files, file) for part in ('--params-file', str(path))]
        if program.namespace:
            arguments += ['-r', f'__ns:=/{program.namespace}']
        for name, other in program.remappings:
            arguments += ['-r', f'{name}:={other}']
        # Until ik_node.start handles it, Ctrl-C waits: it would end an interpreter that begins with an error.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process = subprocess.Popen(
                [sys.executable, '-m', 'ik_node.start', self.name, '--ros-args', *arguments],
                start_new_session=not reads_keys,
                pass_fds=() if kept is None else (kept.fileno(),),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Request its shutdown."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, until: float, say: Callable[[str], None]) -> None:
        """Wait for it until a time (time.monotonic); then log that, and kill it and its children."""
        try:
            self._process.wait(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            say(f'{self.title} did not shut down within {PATIENCE:g} s; killing it')
            with contextlib.suppress(ProcessLookupError):  # no group of its own
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def stop_all(children: list[Child], say: Callable[[str], None]) -> bool:
    """Stop the children, the last first; return whether all ended without an error."""
    for child in reversed(children):
        child.stop()
    until = time.monotonic() + PATIENCE
    for child in children:
        child.wait(until, say)
    return all(child.exit_code == 0 for child in children)


HOST = '127.0.0.1'
KEYS = 'ik_teleop'
SIMULATED = {'noise': 2e-4, 'latency': 0.005, 'droop': 0.005}  # [rad], [s], [rad]: a good small arm


def say(message: str) -> None:
    """Print at once. What cannot be printed is dropped: the nodes must be stopped without a reader, too."""
    with contextlib.suppress(InputError):
        console.say(f'ik_demo: {message}')


def parse(args: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = PlainParser('ik_demo', takes_xacro_args=True)
    groups = add_options(parser)
    groups[MOTION].add_argument('--teleop', action='store_true', help='move the arm with the keys of this terminal')
    page = groups[PAGE]
    page.add_argument('--no-viewer', action='store_true', help='do not start the page')
    page.add_argument('--no-browser', action='store_true', help='do not open the page in a browser')
    page.add_argument('--no-shadows', dest='shadows', action='store_const', const='false', help='as --shadows false')
    parser.add_argument('--port', type=console.renamed('--page-port'), help=argparse.SUPPRESS)
    parser.add_argument('--servos', type=console.renamed('--serial-port'), help=argparse.SUPPRESS)
    return parser.parse_args(args)


def programs(options: argparse.Namespace) -> tuple[LaunchPlan, list[NodeSpec]]:
    """Return the plan for the robot, and the programs to start here. Raises IkError for an invalid robot."""
    given = given_options(options) | {'viewer': str(not options.no_viewer), 'rviz': 'false'}
    if options.track is None and not options.serial_port:
        given['track'] = 'circle'
    if options.teleop:
        given['track'] = NO_TRACK
    if options.teleop and (tools := tools_of(given)[0]):
        raise InputError(f'--teleop is for robots with one tool; this one has the tools {join_names(tools)}')
    planned = launch_plan(given, say)
    keys = [NodeSpec(PACKAGE, KEYS, {})] if options.teleop else []
    return planned, [one for one in planned.programs if one.package == PACKAGE] + keys


def extra_parameters(planned: LaunchPlan, browser: bool = False) -> dict[str, dict[str, Any]]:
    """Return parameters for programs without the topic robot_description, by their names.

    browser: open the page.
    """
    robot = {'robot_description': planned.description}
    return {'ik_node': robot, 'ik_plant': {**robot, **SIMULATED}, 'ik_viewer': {'open_browser': browser}}


def check_page_port(given: str, host: str = HOST) -> None:
    """Raise InputError if the port is not available at an address of this machine."""
    port = int(given) if given.isdecimal() else 0
    if not 0 < port < 65536:
        raise InputError(f'--page-port must be a whole number from 1 to 65535, got {given}')
    with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(
                f'port {port} is not available ({error.strerror}); choose another one: --page-port '
                f'{port + 1} or PAGE_PORT={port + 1} of make'
            ) from None


def own_domain() -> socket.socket | None:
    """Choose the ROS domain of this session; return the socket that keeps it, for the children too.

    None if that domain is not only this session's.
    """
    given = os.environ.get(DOMAIN, '')
    taken = take_domain([int(given)] if given.isdecimal() else [] if given else DOMAINS)
    if taken is None:
        there = session_in(int(given)) if given.isdecimal() else None
        if there:
            say(f'another ik_demo runs in the same ROS domain: {there}. Unset {DOMAIN}, and this one gets its own')
        say(f'Ctrl-C ends everything. ROS domain {given or 0}, this machine only')
        return None
    domain, name = taken
    name.listen(CALLS)
    os.environ[DOMAIN] = str(domain)
    others = (
        '' if given else f'. ik_goto, ik_stop and others find it; other ROS programs need: export {DOMAIN}={domain}'
    )
    say(f'Ctrl-C ends everything. ROS domain {domain}, this machine only{others}')
    return name


def watch(children: list[Child], stop: SignalFlag, tools: Sequence[str], name: socket.socket | None = None) -> int:
    """Report the status until a stop is requested or a child ends; return the exit code.

    name: the socket that keeps the domain.
    """
    listener = Listener(tools, say)
    try:
        while not stop.is_set():
            for child in children:
                if child.exit_code == 0 and child.name == KEYS:
                    return 0
                if child.exit_code is not None:
                    say(f'{child.title} ended with exit code {child.exit_code}, so the other programs are stopped, too')
                    return 1
            if name is not None:
                hang_up(name)
            listener.listen(0.2)
        return 0
    finally:
        listener.close()


def run(options: argparse.Namespace) -> int:
    """Start everything, and stop it again on request."""
    stop = SignalFlag()
    require('rclpy', 'ik_demo')
    if not options.no_viewer:
        for package in EXTRAS['viewer']:
            require(package, 'ik_demo')
        check_page_port(options.page_port, options.host or HOST)
    planned, nodes = programs(options)
    seen = sys.stdout.isatty() and any(map(os.environ.get, ('DISPLAY', 'WAYLAND_DISPLAY')))  # a user at a desktop
    extra = extra_parameters(planned, seen and not options.no_browser)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop.set)
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if os.environ.get('ROS_DISTRO') == 'humble':  # knows only the older variable
        os.environ['ROS_LOCALHOST_ONLY'] = '1'
    os.environ[SESSION] = secrets.token_hex(4)
    name = own_domain()
    children: list[Child] = []
    with tempfile.TemporaryDirectory(prefix='ik_demo_') as folder:
        try:
            for start in nodes:
                more = extra.get(start.executable, {})
                children.append(Child(start, more, Path(folder), start.executable == KEYS, name))
                say(f'starting {children[-1].title}')
            code = watch(children, stop, planned.tools, name)
        finally:
            say('stopping')
            well = stop_all(children, say)
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
        console.say(f'error: {error}', sys.stderr)
        return 2
    except IkError as error:
        console.say(f'ik_demo: {error}', sys.stderr)
        return 1
