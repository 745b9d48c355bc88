# SPDX-License-Identifier: Apache-2.0
"""python -m ik_node.servos.emulator so101: emulate the servos of a profile, and print the port."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ik_node.errors import IkError
from ik_node.model.inertia import Weight
from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf
from ik_node.servos.calibration.profile import read_profile

from .bus import Bus, Server, servos_of, weighing


def main() -> int:
    """Run the emulated bus of a profile until Ctrl-C, or until the program that started it ends."""
    parser = argparse.ArgumentParser(prog='ik_node.servos.emulator', description=__doc__)
    parser.add_argument('profile', help='profile in config/servos, or the path of one')
    parser.add_argument('--description', help='URDF or xacro whose gravity loads the servos')
    parser.add_argument('--xacro-args', default='', help='name:=value ... for a xacro')
    given = parser.parse_args()
    try:
        profile = read_profile(given.profile)
        servos = servos_of(profile)
        bus = Bus(servos, profile.protocol)
        if given.description:
            text = load_description(Path(given.description), given.xacro_args)
            bus.weigh = weighing(profile, servos, Weight(read_urdf(text), text))
    except IkError as error:
        print(error, file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with (
        TemporaryDirectory(prefix='ik_bus_') as folder,
        contextlib.suppress(KeyboardInterrupt),
        contextlib.ExitStack() as stack,
    ):
        link = Path(folder, 'port')
        server = Server(bus, link)
        stack.callback(server.plug, False)  # removes the link
        print(link, flush=True)
        server.run()
    return 0


if __name__ == '__main__':
    sys.exit(main())
