# SPDX-License-Identifier: Apache-2.0
"""ik_stop, ik_resume and ik_status: stop an arm, let it continue, and print its state, without ros2."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus

from ik_node.arguments import PlainParser
from ik_node.console import run, say, without_ros
from ik_node.control.states import NEED_RESUME, State
from ik_node.ros.conversions import report_values
from ik_node.ros.interfaces import LATCHED, subscribe
from ik_node.ros.run import Spinner, begin
from ik_node.ros.sessions import DOMAIN, join, sessions

ARM = 'ik_node'
STANDING = NEED_RESUME | {state.value for state in (State.WAITING, State.INACTIVE, State.UNCONFIGURED)}


class Services:
    """A node for a few calls of ik_node."""

    def __init__(self, program: str, tool: str) -> None:
        """tool: its name where there are several."""
        self._node = rclpy.create_node(program)
        self._spinner = Spinner(self._node)
        self._prefix = f'{ARM}/{tool}/' if tool else f'{ARM}/'

    def close(self) -> None:
        """End the node."""
        self._node.destroy_node()

    def call(self, name: str) -> tuple[bool, str]:
        """Call a service and return whether it has done so, and its message. Raises InputError without ik_node."""
        service = self._prefix + name
        absent, silent = _not_running(f'there is no service {service}'), _not_running('it does not respond')
        response = self._spinner.call(service, absent, silent)
        return response.success, response.message

    def status(self) -> DiagnosticStatus:
        """Return the last report of ik_node. Raises InputError without ik_node."""
        reports: list[DiagnosticStatus] = []
        topic = f'{self._prefix}status'
        subscribe(self._node, DiagnosticStatus, topic, reports.append, LATCHED)
        self._spinner.wait(lambda: reports, _not_running(f'nothing is published on {topic}'))
        return reports[-1]


def _not_running(why: str) -> str:
    domain = os.environ.get(DOMAIN, '0')
    return f'{ARM} is not running in {DOMAIN}={domain}: {why}. Start it first (ik_demo does)'


def stop(given: Sequence[str] | None = None) -> int:
    """Stop the arm. Return 0 once ik_node has taken the stop, 1 if it has not, 2 without ik_node."""
    return _main('ik_stop', _stop, given)


def resume(given: Sequence[str] | None = None) -> int:
    """Let the arm accept goals after a stop or a fault. Return 0, 1 if ik_node refuses, 2 without ik_node."""
    return _main('ik_resume', _resume, given)


def status(given: Sequence[str] | None = None) -> int:
    """Print what the arm does. Return 0, 1 if it accepts no goals, 2 without ik_node."""
    return _main('ik_status', _status, given)


def _main(program: str, act: Callable[[str, str], int], given: Sequence[str] | None) -> int:
    parser = PlainParser(program)
    parser.add_argument('--tool', default='', help='name of the tool, where there are several (default: all)')
    arguments: argparse.Namespace = parser.parse_args(without_ros(sys.argv[1:] if given is None else given))
    return run(act, program, arguments.tool)


def _stop(program: str, tool: str) -> int:
    """Stop the arm, or all arms of this user if several sessions run: a stop must not wait for a choice."""
    found = [] if os.environ.get(DOMAIN) else sessions()
    if len(found) < 2:
        return _call(program, tool, 'stop')
    codes = []
    for one in found:
        os.environ[DOMAIN], os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = str(one.domain), 'LOCALHOST'
        say(f'{program}: {one}')
        codes.append(run(_call, program, tool, 'stop'))
    return max(codes)


def _resume(program: str, tool: str) -> int:
    return _call(program, tool, 'resume')


def _call(program: str, tool: str, name: str) -> int:
    def act(services: Services) -> int:
        done, message = services.call(name)
        say(message, sys.stdout if done else sys.stderr)
        return 0 if done else 1

    return _with_services(program, tool, act)


def _status(program: str, tool: str) -> int:
    def act(services: Services) -> int:
        report = services.status()
        values = report_values(report)
        arm, reason = values.get('arm', ''), values.get('reason', '')
        if arm in NEED_RESUME and values.get('status') == 'rejected':  # the report is on a goal, not on the arm
            known = 'ik_resume' in reason
            say(reason if known else f'{arm}; run ik_resume to continue')
            say(f'the last goal, from {values.get("goal")}, was rejected' if known else report.message)
        else:
            say(report.message)
        errors = ' and '.join(
            f'{1e3 * value:.3f} mm' if key == 'position_error' else f'{value:.5f} rad'
            for key in ('position_error', 'direction_error')
            if (value := float(values.get(key) or 'nan')) == value
        )
        if errors:
            say(f'the solution misses the goal by {errors}')
        return 1 if values.get('arm') in STANDING else 0

    return _with_services(program, tool, act)


def _with_services(program: str, tool: str, act: Callable[[Services], int]) -> int:
    join(program)
    begin()
    services = Services(program, tool)
    try:
        return act(services)
    finally:
        services.close()
        rclpy.utilities.try_shutdown()
