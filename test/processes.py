# SPDX-License-Identifier: Apache-2.0
"""What the tests that start processes share."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from domains import new_domain
from small_arm import arm_urdf
from waiting import wait_for

ROOT = Path(__file__).resolve().parents[1]
# [s]; no wait of a machine that does nothing else takes as long
TIMEOUT = 20.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
PATIENT = 'goal_timeout:=60.0'  # a busy machine is no failure
LEAVING = 10.0  # s for a program to end by itself


def with_parameters(*given: str) -> list[str]:
    """Return the arguments for parameters as name:=value."""
    return ['--ros-args', *(word for one in given for word in ('-p', one))]


class Running:
    """A program in a process and session of its own, and what it has said so far."""

    def __init__(
        self,
        name: str,
        *arguments: str,
        stdin: int | None = None,
        domain: int | None = None,
        **variables: str,
    ) -> None:
        self.domain = new_domain() if domain is None else domain
        environment = os.environ | {
            **variables,
            'ROS_DOMAIN_ID': str(self.domain),
            'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')]).rstrip(os.pathsep),
        }
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'ik_node.start', name, *arguments],
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        """All that it has said."""
        return ''.join(self._lines)

    def _read(self) -> None:
        # Adding to a text would take longer and longer: a program that says much would wait for its reader.
        for line in self.process.stdout:
            self._lines.append(line)

    def wait(self, condition: Callable[[], object], what: str) -> None:
        wait_for(condition, what, TIMEOUT, alive=self._reader.is_alive, context=lambda: self.said)

    def wait_said(self, words: str) -> None:
        self.wait(lambda: words in self.said, words)

    def wait_ended(self) -> int:
        """The exit code, once all is said."""
        code = self.process.wait(timeout=TIMEOUT)
        self._reader.join(timeout=TIMEOUT)
        return code

    def children(self) -> dict[str, int]:
        """Process ids of the nodes that it started, by name."""
        return nodes_of(self.process.pid)

    def end(self) -> None:
        """Leave nothing behind, whatever the test did.

        A process that is killed may leave shared memory in which the next one crashes: Fast DDS issue 6501.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.terminate()
            self.process.wait(timeout=LEAVING)
        for pid in [*self.children().values(), self.process.pid]:
            with contextlib.suppress(OSError):
                os.killpg(pid, 9)
        self.process.wait()
        self._reader.join(timeout=TIMEOUT)


def nodes_of(pid: int) -> dict[str, int]:
    """Process ids of the nodes that a process started, by name."""
    found = {}
    for folder in Path('/proc').iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = folder.joinpath('stat').read_text().rsplit(')', 1)[1].split()[1]
            command = folder.joinpath('cmdline').read_text().split('\0')
        except OSError:
            continue
        if int(parent) == pid and '-m' in command:
            found[command[command.index('-m') + 2]] = int(folder.name)
    return found


def start_node(folder: Path, *parameters: str, domain: int | None = None, **variables: str) -> Running:
    """Start ik_node with the small arm, whose description is put into a folder."""
    path = folder / 'arm.urdf'
    path.write_text(arm_urdf())
    arguments = with_parameters(f'urdf_file:={path}', 'tip_link:=tool0', PATIENT, *parameters)
    return Running('ik_node', *arguments, domain=domain, **variables)
