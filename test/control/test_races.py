"""Threads that meet at the worst moment: each test stops one there and runs the other one meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from control_harness import Asked, Rig

from ik_node import Goal
from ik_node.control.targets import ArmTargets

LONG = 10.0  # [s] in which a thread ends that nothing holds up


def elsewhere(act: Callable[[], object]) -> None:
    """Do something in another thread, to its end."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive()


# Goals


@pytest.mark.parametrize('read', range(1, 5))
def test_a_hand_that_takes_over_while_a_goal_of_a_stream_is_solved_costs_no_report(model, read):
    """The hand forgets the last goal directly after the goal thread has read it for the read-th time."""
    rig = Rig(model)
    reads: list[object] = []

    class Interrupted(ArmTargets):
        solving = False

        def _solve(self, *arguments):
            self.solving = True
            try:
                return super()._solve(*arguments)
            finally:
                self.solving = False

        @property
        def _last(self):
            found = self._kept
            if self.solving and found is not None and len(reads) < read:
                reads.append(found)
                if len(reads) == read:
                    elsewhere(lambda: rig.controller.steer(np.full(5, 0.1), rig.time))
            return found

        @_last.setter
        def _last(self, value):
            self._kept = value

    targets = rig.controller._targets
    targets._kept = targets.__dict__.pop('_last')
    targets.__class__ = Interrupted
    assert rig.ask(Goal(*model.arm.fk(np.full(5, 0.2)))).status == 'solved'
    request = Asked(Goal(*model.arm.fk(np.full(5, 0.21))))
    rig.controller.submit(request)
    assert reads
    assert [report.status for report in rig.reports if report.request is request] == ['solved']
