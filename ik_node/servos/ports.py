# SPDX-License-Identifier: Apache-2.0
"""Ports: which serial port an arm is at, and the emulated one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ik_node.errors import InputError, path_text
from ik_node.extras import load
from ik_node.servos.bus.serial_transport import SerialTransport, ports
from ik_node.servos.bus.transport import PortError, Transport
from ik_node.servos.calibration.profile import PROTOCOLS, ArmProfile

EMULATED = 'emulated'


def the_port(given: str) -> str:
    """Return the path of the port: given, or the only one there is. Raises PortError."""
    if given:
        return given
    found = ports()
    if not found:
        raise PortError('no serial adapter is plugged in: connect the USB cable of the arm')
    if len(found) > 1:
        shown = ', '.join(map(path_text, found))
        raise PortError(f'there are several serial adapters, choose the port: {shown}')
    return found[0]


def arm_at(given: str) -> str:
    """Return an identifier of the arm at a port: the serial number of its adapter, or the port's name.

    Empty for adapters without a serial number: they may be at another port tomorrow. Raises PortError.
    """
    if given == EMULATED:
        return given
    port = the_port(given)
    devices = load('serial.tools.list_ports', 'a servo bus').comports()
    device = next((one for one in devices if one.device == os.path.realpath(port)), None)
    return Path(port).name if device is None else device.serial_number or ''


def opener(given: str, profile: ArmProfile) -> Callable[[], Transport]:
    """Return a function that opens the port; see the_port."""
    codec = PROTOCOLS[profile.protocol]
    return lambda: SerialTransport(the_port(given), profile.baud, codec)


class EmulatedArm:
    """The emulated servos of a profile in a process of their own; port is where they are. Close it.

    description: path of the URDF whose gravity loads them; None: nothing does. xacro_args: for it.
    """

    def __init__(self, profile: str, description: Path | None = None, xacro_args: str = '') -> None:
        loaded = [] if description is None else [f'--description={description}', f'--xacro-args={xacro_args}']
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'ik_node.servos.emulator', profile, *loaded],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C ends the driver first
        )
        assert self._process.stdout is not None
        with self._process.stdout as output:
            self.port = output.readline().strip()
        if not self.port:
            self._process.wait()
            raise InputError(f'the servos of profile {profile} cannot be emulated')

    def close(self) -> None:
        """End the process, which also ends with this one."""
        self._process.terminate()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
