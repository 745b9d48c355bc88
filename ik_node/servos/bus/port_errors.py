# SPDX-License-Identifier: Apache-2.0
"""What to tell people whose port cannot be opened: the cause, and what helps."""

from __future__ import annotations

import errno
import grp
import os
from pathlib import Path

from ik_node.errors import path_text
from ik_node.servos.bus.transport import PortError

TERMINALS = '/dev/pts/'  # emulated servos, whose program holds both ends

# Programs that take serial ports of which they know nothing, and how one stops them.
_INTRUDERS = {
    'ModemManager': 'it treats every new port as a modem; stop it: sudo systemctl disable --now ModemManager',
    'brltty': 'it takes this adapter for a Braille display; remove it: sudo apt remove brltty',
}


def ports() -> list[str]:
    """Return the paths of all serial adapters; where there are lasting ones (by-id), only these."""
    lasting = sorted(map(str, Path('/dev/serial/by-id').glob('*')))
    return lasting or sorted(str(path) for kind in ('ttyACM*', 'ttyUSB*') for path in Path('/dev').glob(kind))


def explain(port: str, error: OSError) -> PortError:
    """Return the error for a port that could not be opened."""
    name = path_text(port)
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return PortError(f'{name} does not exist. {_present()}{_taken_by_brltty()}')
    if error.errno in (errno.EACCES, errno.EPERM):
        return PortError(f'you may not open {name}. {_permission(port)}')
    if error.errno in (errno.EBUSY, errno.EAGAIN):
        return PortError(f'{name} is in use{_holders(port)}')
    if error.errno in (errno.ENOTTY, errno.EINVAL, errno.EISDIR):
        return PortError(f'{name} is not a serial port, or does not support this baud rate. {_present()}')
    return PortError(f'{name} cannot be opened: {error.strerror or error}. Plug the adapter in again')


def check_alone(port: str) -> None:
    """Raise PortError if another program has opened a port before, without a lock."""
    device = os.path.realpath(port)
    if device != os.devnull and not device.startswith(TERMINALS) and _holding(device):
        raise PortError(f'{path_text(port)} is in use{_holders(port)}')


def gone(port: str) -> PortError:
    """Return the error for a port that was open and no longer works."""
    return PortError(
        f'{path_text(port)} is gone: the adapter was unplugged or reset. Plug it in and open it again'
    )


def _present() -> str:
    """Return what adapters there are."""
    found = ports()
    if not found:
        return 'No serial adapter is plugged in: connect its USB cable'
    return f'Plugged in: {", ".join(map(path_text, found))}'


def _permission(port: str) -> str:
    """Return how one gets the permission to open a port."""
    try:
        owner = grp.getgrgid(Path(port).stat().st_gid)
    except (OSError, KeyError):
        return 'Ask the administrator of this computer'
    if owner.gr_gid in os.getgroups():
        return f'Nor may its group {owner.gr_name}: sudo chmod g+rw {path_text(port)}'
    user = os.environ.get('USER', '')
    if user and user in owner.gr_mem:
        return f'You will be in the group {owner.gr_name} after the next login: log out and in again'
    return f'Join its group, then log out and in again: sudo usermod -aG {owner.gr_name} {user or "$USER"}'


def _holders(port: str) -> str:
    """Return which other programs have a port open, and how one stops them."""
    holders = list(_holding(os.path.realpath(port)))
    if not holders:
        return ' by another program, perhaps ModemManager or brltty: sudo fuser -v ' + path_text(port)
    names = ', '.join(f'{name} (process {process})' for process, name in holders)
    remedies = [remedy for intruder, remedy in _INTRUDERS.items() if intruder in dict(holders).values()]
    return f' by {names}: ' + ('; '.join(remedies) or 'stop that first')


def _holding(device: str) -> list[tuple[int, str]]:
    """Return number and name of the other processes that have a device open, as far as one may see that."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            if int(folder.name) != os.getpid() and any(
                os.path.realpath(handle) == device for handle in (folder / 'fd').iterdir()
            ):
                found.append((int(folder.name), (folder / 'comm').read_text(encoding='utf-8').strip()))
        except OSError:
            continue  # it belongs to somebody else, or has just ended
    return found


def _taken_by_brltty() -> str:
    """Return a remark where brltty runs: it makes CH340 adapters vanish again."""
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            if (folder / 'comm').read_text(encoding='utf-8').strip() == 'brltty':
                return f'. brltty is running: {_INTRUDERS["brltty"]}'
        except OSError:
            continue
    return ''
