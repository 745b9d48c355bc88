# SPDX-License-Identifier: Apache-2.0
"""Runs: checks programs in a thread of its own, and runs them once they have passed."""

from __future__ import annotations

from typing import NamedTuple

from rclpy.node import Node

from ik_node.errors import IkError, quoted
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.programs.player import Player
from ik_node.teach.check import Checked
from ik_node.teach.checker import Checker
from ik_node.teach.program import Program
from ik_node.teach.runner import Runner, State
from ik_node.viewer.panel.html import at_page, capital
from ik_node.viewer.teach.panel import CHECK, CONTINUE, RUN, STEP
from ik_node.viewer.worker import Worker


class Wanted(NamedTuple):
    """What users want of a program: CHECK, RUN, STEP or CONTINUE. text: of the robot. loops: 0 for ever."""

    what: str
    program: Program
    text: str
    loops: int


class Runs:
    """The runs of one program at a time. Call update once per frame.

    A run begins only if its own check has passed, from where the arm is, and the arm has rested since.
    title, sentence: the state in words. following: number of the point that comes next. checked: the last
    check that has passed.
    """

    def __init__(self, node: Node, met: Neighbours) -> None:
        """met: the other programs."""
        self._node, self._met = node, met
        self._players: dict[str, Player] = {}  # by tool
        self._player: Player | None = None  # of the present run
        self._runner: Runner | None = None  # once it has begun
        self._worker: Worker[tuple[Wanted, Checked | str]] = Worker('teach')
        self._checker = Checker()  # of the thread
        self._wanted: Wanted | None = None  # what is being prepared
        self._submitted = False
        self._aborted = ''  # why
        self.title, self.sentence, self.following = '', '', 0
        self._passes = self._before = 0  # complete ones: so far, and before the present run
        self.checked: Checked | None = None
        self.failed: Checked | None = None  # the last check, if it has not passed

    @property
    def active(self) -> bool:
        """Whether a run goes on or is being prepared."""
        return self._player is not None

    def want(self, wanted: Wanted, now: float) -> None:
        """Prepare what users want, at now [s], if nothing goes on."""
        if self.active:
            return
        tool = wanted.program.tool
        if tool not in self._players:
            self._players[tool] = Player(self._node, self._met, tool)
        if wanted.what == RUN or self.following >= len(wanted.program.points):
            self.restart()
        if wanted.loops and self._passes >= wanted.loops:
            self._passes = 0
        self._player, self._wanted, self._submitted = self._players[tool], wanted, False
        self.failed = None
        self._player.prepare(now)
        self._say('Checking', 'The arm moves only after the check.' if wanted.what != CHECK else '')

    def restart(self) -> None:
        """Let the next run begin with the first point."""
        self.following = self._passes = 0

    def edited(self, before: Program, after: Program) -> None:
        """Let the same point come next in a program that was edited, or else whichever is the first.

        What was said of the old program is gone.
        """
        names, number = before.names, self.following
        if 0 < number < len(names) and names[number] in after.names:
            self.following = after.names.index(names[number])
        elif len(after.names) != len(names):  # else it was renamed
            self.following = 0
        if self.following:
            self._say(State.PAUSED.value, f'Next: {quoted(after.names[self.following])}.')
        else:
            self._say('', '')

    def forget(self) -> None:
        """Forget the checks: they were for another robot."""
        self.checked = self.failed = None

    def pause(self, why: str = '') -> None:
        """Ask for no motion after the present one, and for none of a run that is being prepared."""
        if self._wanted is not None:
            self._drop(why or 'it was paused')
        elif self._runner is not None:
            self._runner.pause()

    def abort(self, why: str) -> None:
        """Let the next updates stop the arm, end what goes on and restore its speed; for any thread."""
        self._aborted = why

    def _drop(self, why: str) -> None:
        """Forget a run that is being prepared."""
        self._worker.drop()
        self._wanted = None
        if self._player is not None:
            self._player.release()
            self._player = None
        self._say('Ended', f'{capital(why)}. Nothing was started.')

    def update(self, now: float) -> None:
        """Do what is due at now [s]."""
        if self._player is None:
            return
        if self._aborted:
            if self._wanted is not None:
                return self._drop(self._aborted)
            if self._runner is not None:
                self._runner.end(self._aborted, stops=True)
        self._player.update(now)
        if self._wanted is not None:
            self._prepare(self._player, self._wanted)
        elif self._runner is not None:
            self._follow(self._runner)
            if not self._player.busy:
                self._player = self._runner = None

    def _prepare(self, player: Player, wanted: Wanted) -> None:
        if player.interruption:
            self._drop(player.interruption)
        elif not self._submitted:
            if player.prepared:
                self._submitted = True
                self._submit(wanted, player)
        elif (result := self._worker.take()) is not None and result[0] is wanted:
            self._take(player, wanted, result[1])

    def _submit(self, wanted: Wanted, player: Player) -> None:
        begin = self.following if wanted.what in (STEP, CONTINUE) else 0
        passes = 0 if wanted.what == CHECK else self._passes
        again = wanted.what != STEP and wanted.loops - passes != 1
        settings, start = player.settings, dict(player.joints)
        before, checker = self.checked, self._checker

        def check() -> tuple[Wanted, Checked | str]:
            try:
                found = checker.check(wanted.text, settings, wanted.program, start, begin, again, before)
            except IkError as error:
                return wanted, str(error)
            except Exception as error:  # the page must say that there is no result
                return wanted, f'unexpected error, please report it: {error!r}'
            return wanted, found

        self._worker.submit(check)

    def _take(self, player: Player, wanted: Wanted, result: Checked | str) -> None:
        """Begin a run if its check has passed."""
        if isinstance(result, str) or not result.passed:
            self.failed = None if isinstance(result, str) else result
            self._finish(player, 'Rejected', result if isinstance(result, str) else 'The arm has not moved.')
            return
        self.checked = result
        if wanted.what == CHECK:
            self._finish(player, 'Ready to run', '')
        elif not player.prepared:
            self._drop('the arm has moved since the check')
        else:
            self._wanted = None
            loops = wanted.loops - self._passes if wanted.loops else 0
            self._runner, self._before = Runner(result, loops, single=wanted.what == STEP), self._passes
            player.run(self._runner, result.speed)

    def _finish(self, player: Player, title: str, sentence: str) -> None:
        player.release()
        self._wanted = self._player = None
        self._say(title, capital(sentence))

    def _follow(self, runner: Runner) -> None:
        """Show where a run is."""
        self.following, self._passes = runner.index, self._before + runner.passes
        sentence = capital(runner.sentence)
        if runner.active:
            after = f', after {_runs(self._passes)}' if self._passes else ''
            sentence = f'Moving to {quoted(runner.point)}{after}.'
        elif runner.state is State.PAUSED:
            sentence = f'Next: {quoted(runner.point)}, after {_runs(self._passes)}.'
        elif runner.state is State.FINISHED:
            sentence = f'{_runs(self._passes)}.'
            self.restart()
        self._say(runner.state.value, sentence)

    def _say(self, title: str, sentence: str) -> None:
        self.title, self.sentence = title, at_page(sentence)

    def close(self) -> None:
        """End the thread."""
        self._worker.close()


def _runs(count: int) -> str:
    return f'{count} complete run' if count == 1 else f'{count} complete runs'
