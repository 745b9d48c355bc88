# SPDX-License-Identifier: Apache-2.0
"""ik_play: checks a program of taught points, and has the arm of ik_node run it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from std_msgs.msg import String

from ik_node.arguments import PlainParser
from ik_node.console import run, say, without_ros
from ik_node.control.preview import Previews
from ik_node.errors import OTHER_USER, InputError, quoted
from ik_node.ros.interfaces import DESCRIPTION
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.run import Spinner, begin
from ik_node.ros.sessions import join
from ik_node.steady import steady
from ik_node.teach.check import CheckReport, check
from ik_node.teach.program import Program
from ik_node.teach.runner import Runner, State

from .player import Player

PATIENCE = 10.0  # [s] for the robot description, for the answer to a stop, and to restore the speed
PERIOD = 0.02  # [s] between two looks at the run


class Play:
    """A node that runs one program."""

    def __init__(self, program: Program) -> None:
        self._node = rclpy.create_node('ik_play')
        self.spinner = Spinner(self._node)
        self._program = program
        prefix = f'{program.tool}/' if program.tool else ''
        sends = [f'{prefix}goal_joints', f'{prefix}goal_path']
        self._player = Player(self._node, Neighbours(self._node, 'ik_play', sends=sends), program.tool)
        self._text = ''
        DESCRIPTION.subscription(self._node, self._describe)

    def close(self) -> None:
        """End the node."""
        self._node.destroy_node()

    def checked(self, again: bool) -> CheckReport:
        """Return the check of the program from where the arm is. Raises IkError without ik_node."""
        self._wait(lambda: self._text, 'no robot_description is published')
        self._player.prepare(steady())
        while not self._player.prepared:
            self._spin()
            if self._player.interruption:
                raise InputError(self._player.interruption)
        settings = self._player.settings
        assert settings is not None
        preview = Previews().of(self._text, settings, self._program.tool)
        return check(preview, self._program, self._player.joints, again=again)

    def run(self, checked: CheckReport, loops: int) -> Runner:
        """Run a checked program, say where it is, and return its runner."""
        runner, reported = Runner(checked, loops), (0, '')
        self._player.run(runner, checked.speed)
        while self._player.busy:
            if runner.active and reported != (runner.passes, runner.point):
                reported = runner.passes, runner.point
                say(f'{runner.passes + 1}: {quoted(runner.point)}' if loops != 1 else quoted(runner.point))
            self._spin()
        return runner

    def stop(self) -> None:
        """Stop the arm and restore its speed, if a run has begun; a second signal does not prevent that."""
        self.spinner.ignore_signals()
        runner = self._player.runner
        if runner is None:
            return
        runner.end('interrupted')
        future = self._player.stop()
        silent = f'ik_node has not responded to the stop. {OTHER_USER}'
        self._wait(lambda: future is None or future.done(), silent)
        say('ik_node is not running' if future is None else future.result().message)
        self._wait(lambda: not self._player.busy, 'the speed could not be restored')

    def _describe(self, message: String) -> None:
        self._text = message.data

    def _spin(self) -> None:
        self.spinner.spin(PERIOD)
        self._player.update(steady())

    def _wait(self, condition: Callable[[], Any], otherwise: str) -> None:
        end = steady() + PATIENCE
        while not condition():
            if steady() > end:
                raise InputError(otherwise)
            self._spin()


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 once the program has run, 1 if it was rejected or ended before its end.

    Return 2 for a file that is not a program, and without ik_node.
    """
    parser = PlainParser('ik_play')
    parser.add_argument('program', help='YAML file of the program')
    parser.add_argument(
        '--loops', type=int, default=1, metavar='N', help='number of runs; 0: until Ctrl-C (default: 1)'
    )
    parser.add_argument(
        '--check',
        action='store_true',
        help='check the program from the present pose of the arm without running it',
    )
    arguments = without_ros(sys.argv[1:] if given is None else given)
    return run(_play, parser.parse_args(arguments))


def _play(arguments: argparse.Namespace) -> int:
    if arguments.loops < 0:
        raise InputError(f'--loops must be 0 or more, got {arguments.loops}')
    program = Program.load(arguments.program)
    join('ik_play')
    begin()
    play = Play(program)
    play.spinner.handle_signals()  # the arm must not go on without its program
    try:
        checked = play.checked(again=arguments.loops != 1)
        for finding in checked.findings:
            say(f'{"" if finding.serious else "note: "}{finding}')
        if not checked.passed:
            say('the program is rejected; the arm has not moved')
            return 1
        if arguments.check:
            say(f'the program can run from the present pose of the arm and takes {checked.duration:.1f} s')
            return 0
        runner = play.run(checked, arguments.loops)
        say('finished' if runner.state is State.FINISHED else f'ended: {runner.sentence}')
        return 0 if runner.state is State.FINISHED else 1
    except KeyboardInterrupt:
        play.stop()
        raise
    finally:
        play.close()
        rclpy.utilities.try_shutdown()
