# SPDX-License-Identifier: Apache-2.0
"""Search: servos that answer otherwise than the profile says: at another speed, id or protocol."""

from __future__ import annotations

from collections.abc import Callable

from ik_node.servos.bus.protocol import Codec
from ik_node.servos.bus.transport import Answer, PortError, Transport
from ik_node.servos.calibration.profile import PROTOCOLS, ArmProfile

BAUDS = {
    'feetech': (1_000_000, 500_000, 250_000, 115_200),
    'dynamixel': (57_600, 1_000_000, 2_000_000, 115_200, 3_000_000, 4_000_000),
}
IDS = range(11)  # that are tried besides those of the profile
Open = Callable[[int, Codec], Transport]  # speed [baud] and protocol

KNOWN = {  # USB vendor and product of adapters for servos
    (0x0403, 0x6014): 'U2D2 of ROBOTIS, or another adapter with an FT232H',
    (0x0403, 0x6001): 'an adapter with an FT232R',
    (0x1A86, 0x55D3): 'the servo board of Waveshare, or another adapter with a CH343',
    (0x1A86, 0x7523): 'FE-URT-1 of Feetech, or another adapter with a CH340',
}


def search(open_port: Open, profile: ArmProfile, silent: set[int]) -> list[str]:
    """Return sentences about servos that answer otherwise. silent: ids that should answer, and do not.

    Only other ids are looked for if some servos of the profile answer.
    """
    all_silent = silent == set(profile.ids)
    found: list[str] = []
    for name in sorted(PROTOCOLS, key=lambda name: name != profile.protocol):
        for baud in sorted(BAUDS[name], key=lambda baud: baud != profile.baud):
            same = name == profile.protocol and baud == profile.baud
            if not same and not all_silent:
                continue
            ids = _answering(open_port, baud, name, set(IDS) | set(profile.ids))
            strange = sorted(ids - set(profile.ids)) if same else sorted(ids)
            if strange:
                found.append(_sentence(profile, name, baud, strange))
            if ids and not same:
                return found
    return found


def adapter(vendor: int | None, product: int | None) -> str:
    """Return what adapter that is by its USB numbers, empty if it is none that is known for servos."""
    return KNOWN.get((vendor or 0, product or 0), '')


def _answering(open_port: Open, baud: int, protocol: str, ids: set[int]) -> set[int]:
    try:
        transport = open_port(baud, PROTOCOLS[protocol])
    except PortError:  # it does not know this speed
        return set()
    try:
        return {id for id in sorted(ids) if isinstance(transport.ping(id), Answer)}
    finally:
        transport.close()


def _sentence(profile: ArmProfile, protocol: str, baud: int, ids: list[int]) -> str:
    shown = f'{"servos" if len(ids) > 1 else "servo"} {", ".join(map(str, ids))}'
    if protocol != profile.protocol:
        return (
            f'{shown} answered in the protocol of {protocol.capitalize()} servos, the profile '
            f'{profile.name} has {profile.protocol.capitalize()}: choose another profile'
        )
    if baud != profile.baud:
        return (
            f'{shown} answered at {baud} baud, the profile {profile.name} has {profile.baud}: set the '
            "speed of the servos with their maker's program, or write that of the servos into a profile"
        )
    return f'{shown} answered, but the profile {profile.name} has no such id'
