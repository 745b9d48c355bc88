# SPDX-License-Identifier: Apache-2.0
"""30 deliberate faults, one at a time: does a test fail? python test/mutations.py [--first K] [--count N]

Works on a copy of the repository beside the system's temporary files. First the tests of make quick, which
should catch at least 20 of them; then, for those that these miss, the tests of make test.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from durations import FOLDERS

ROOT = Path(__file__).resolve().parents[1]
SUITES = {
    'quick': ('-m', 'not slow', *FOLDERS),
    'test': ('-m', 'not long'),
}
TIMEOUT = 1800.0  # [s]: a test that hangs has noticed, too


class Mutation(NamedTuple):
    """A fault: text in a file of ik_node and what replaces it."""

    file: str
    old: str
    new: str


MUTATIONS = [
    # kernels
    Mutation('kernels/chain/forward.py', 'v = 1.0 - c\n', 'v = 1.0 + c\n'),
    Mutation('kernels/chain/forward.py', 'joints[i, RATIO] * q[int', 'q[int'),
    Mutation('kernels/arrays/rotation.py', 'return 0.5 * abs(sine) / (length * s), s', 'return 0.5, s'),
    Mutation('kernels/methods/lm.py', 'stiffness *= 10.0', 'stiffness *= 0.1'),
    Mutation('kernels/methods/restarts.py', 'if cost < present:', 'if cost > present:'),
    Mutation('kernels/closed_form/parallel.py', 'range(1 if other == 0.0 else 2)', 'range(1)'),
    Mutation('kernels/tracking/pursuit.py', 'high = min(hardest, ', 'high = min(2.0 * hardest, '),
    # model
    Mutation(
        'model/urdf/mimic.py', 'ratio, shift = drivers[mimic.joint]', 'shift, ratio = drivers[mimic.joint]'
    ),
    Mutation('model/degrees_of_freedom.py', 'RANK_TOLERANCE * values[0]', '0.1 * values[0]'),
    Mutation('model/degrees_of_freedom.py', 'return max(ranks)', 'return min(ranks)'),
    Mutation('model/urdf/joint_element.py', '1.0 if multiplier is None', '-1.0 if multiplier is None'),
    # solver
    Mutation(
        'solver/unreachable.py',
        '1: Cause.TOO_FAR, -1: Cause.TOO_NEAR',
        '1: Cause.TOO_NEAR, -1: Cause.TOO_FAR',
    ),
    Mutation('solver/unreachable.py', 'np.clip(seed, arm.lower, arm.upper)', 'arm.lower'),
    Mutation(
        'solver/unreachable.py',
        'if miss is not None:\n            return',
        'if miss is None:\n            return',
    ),
    # control
    Mutation('control/checks/joint_gate.py', 'if first is None or k < first[0]:', 'if first is not None:'),
    Mutation('control/checks/joint_gate.py', 'inside.all() and (np.abs(found) < most).all()', 'inside.all()'),
    Mutation('control/teleop/clutch.py', 'return abs(time - self._enabled) <= self._timeout', 'return True'),
    Mutation('control/teleop/clutch.py', 'moved > JUMP or ', ''),
    Mutation('control/joints/following_error.py', 'if not known.any():', 'if known.any():'),
    Mutation('control/controller/arm_state.py', 'self._on(Event.STOP)', 'pass'),
    Mutation('control/controller/arm_state.py', '+= 1\n        self._brake(reason)', '+= 1'),
    Mutation('control/checks/motion_check.py', 'if plan.joints is None or free:', 'if True:'),
    Mutation(
        'control/motion/pursuit.py', 'self._calm = (after - k * target) / (1.0 - k)', 'self._calm = after'
    ),
    Mutation('control/motion/stamps.py', 'stamps if 0.0 <= late <= PROMPT else stamps + late', 'stamps'),
    # ros
    Mutation('ros/goals/goal_requests.py', 'if self.arrival < self.context.replaced:', 'if False:'),
    Mutation(
        'ros/goals/goal_requests.py',
        'if arm.model.shared:\n            raise InputError(SHARED)',
        '',
    ),
    Mutation(
        'ros/goals/goal_requests.py',
        'return Goal(T[:3, :3] @ point + T[:3, 3])',
        'return Goal(point)',
    ),
    Mutation('ros/goals/frames.py', 'return model.link_in_base(frame, values)', 'return np.eye(4)'),
    Mutation('ros/goals/goal_requests.py', 'before[0] == named and ', ''),
    Mutation('ros/conversions.py', 'if not all(map(math.isfinite, values)):', 'if False:'),
]


def copied(folder: Path) -> Path:
    """Return a copy of the repository in a folder, with the interpreter of this one."""
    ignored = shutil.ignore_patterns('.git', '.venv*', '__pycache__', '_build', '.*_cache', '.hypothesis')
    shutil.copytree(ROOT, folder, ignore=ignored)
    return folder


def noticed(copy: Path, suite: str) -> str:
    """Run a suite of the copy until a test fails, and return its name; empty if all pass."""
    environment = {
        **os.environ,
        'IK_NODE_SHARED': str(ROOT.parent / 'shared'),
        'PYTHONDONTWRITEBYTECODE': '1',
    }
    # The fault is there, so the test that looks for its text fails whatever the others do.
    own = ('--ignore', 'test/unit/test_mutations.py')
    command = [sys.executable, '-m', 'pytest', '-q', '-x', '-n', 'logical', '--max-worker-restart', '0']
    with subprocess.Popen(
        [*command, *own, *SUITES[suite]],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as done:
        try:
            said, _ = done.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)
            return 'a test that hangs'
    if done.returncode == 0:
        return ''
    failed = re.search(r'^(?:FAILED|ERROR) (\S+)', said, re.MULTILINE)
    return failed[1] if failed else f'exit code {done.returncode}'


def main() -> int:
    """Print a row per mutation; exit code 1 if one is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--count', type=int, default=len(MUTATIONS))
    given = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        copy = copied(Path(temporary, 'ik_node'))
        for suite in SUITES:
            failed = noticed(copy, suite)
            assert not failed, f'without a fault {failed} fails'
        for number, mutation in list(enumerate(MUTATIONS))[given.first : given.first + given.count]:
            path, begin = copy / 'ik_node' / mutation.file, time.monotonic()
            before = path.read_text(encoding='utf-8')
            assert before.count(mutation.old) == 1, mutation
            path.write_text(before.replace(mutation.old, mutation.new), encoding='utf-8')
            for suite in SUITES:
                test = noticed(copy, suite)
                if test:
                    break
            path.write_text(before, encoding='utf-8')
            if not test:
                missed.append(mutation)
            took = time.monotonic() - begin
            print(
                f'{number:2} {mutation.file:36} {suite if test else "NOT":5} {took:5.0f} s  {test}',
                flush=True,
            )
    return int(bool(missed))


if __name__ == '__main__':
    sys.exit(main())
