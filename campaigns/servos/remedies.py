# SPDX-License-Identifier: Apache-2.0
"""What an error of the driver must tell: which servo or port, and what helps."""

from __future__ import annotations

import re

NAMED = re.compile(r'servo \d+ \(\w+\)|"\w+"')  # a servo, or a joint
WHOLE = 'no servo answers'  # names all of them
REMEDIES = (
    'Check its cable and its power',
    'Check its cable, and switch the power of the arm off and on',
    'Check the cables after the last servo that answers',
    'check the cables',
    'Is the power supply of the arm on?',
    'choose another profile',
    'move it inside by hand',
    'hold the arm still while its torque is switched on',
    'Support the arm, then clear the fault',
    'support the arm, and switch its power off and on',
    'unplug the power of the arm',
    'Plug it in and open it again',
    'connect its USB cable',
    'Plugged in: ',
)


def not_said(message: str, port: str) -> list[str]:
    """Return what a message of an error does not tell: where it is, or what helps."""
    wrong = []
    if not (NAMED.search(message) or WHOLE in message or port in message):
        wrong.append(f'no servo is named: {message}')
    if not any(remedy in message for remedy in REMEDIES):
        wrong.append(f'no remedy: {message}')
    return wrong
