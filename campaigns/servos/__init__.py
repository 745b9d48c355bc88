# SPDX-License-Identifier: Apache-2.0
"""Random faults against an arm of emulated servos, and a judge.

activations: torque is switched on, from any place, with stale goals, with faults in every step.
streams: commands stream while faults come and go, the adapter is unplugged, the power dips.
kills: the driver is killed while it streams.

`python -m campaigns.servos streams --runs 1000` prints each violation with the
seed of its run, and exits with 1 if there is one.
"""

from campaigns.servos.activations import activations
from campaigns.servos.kills import kills
from campaigns.servos.streams import streams

__all__ = ['activations', 'kills', 'streams']
