# SPDX-License-Identifier: Apache-2.0
"""Whose zeros count at a port: those of the arm, wherever it is plugged in."""

from __future__ import annotations

import os

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from ik_node.servos.bus.transport import PortError
from ik_node.servos.ports import arm_at


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    """Adapters at files: pyserial looks into /sys, which needs real ones."""
    found = []
    for name, number in (('ttyACM0', '5A7C123'), ('ttyUSB0', None)):
        (tmp_path / name).touch()
        device = ListPortInfo(os.path.realpath(tmp_path / name))
        device.serial_number = number
        found.append(device)
    monkeypatch.setattr(list_ports, 'comports', lambda: found)
    return tmp_path


def test_an_arm_is_known_by_the_serial_number_of_its_adapter(adapters):
    assert arm_at(str(adapters / 'ttyACM0')) == '5A7C123'
    lasting = adapters / 'usb-1a86_USB_Single_Serial_5A7C123-if00'
    lasting.symlink_to(adapters / 'ttyACM0')
    assert arm_at(str(lasting)) == '5A7C123'


def test_an_adapter_without_a_number_may_be_at_any_port(adapters):
    assert arm_at(str(adapters / 'ttyUSB0')) == ''


def test_what_is_no_adapter_has_its_name(adapters):
    assert arm_at('emulated') == 'emulated'
    assert arm_at(str(adapters / 'bus')) == 'bus'


def test_the_only_port_is_the_one_that_counts(adapters, monkeypatch):
    monkeypatch.setattr('ik_node.servos.ports.ports', lambda: [str(adapters / 'ttyACM0')])
    assert arm_at('') == '5A7C123'
    monkeypatch.setattr('ik_node.servos.ports.ports', list)
    with pytest.raises(PortError, match='no serial adapter'):
        arm_at('')
