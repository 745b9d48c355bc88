# SPDX-License-Identifier: Apache-2.0
"""Random faults against an arm of emulated servos, and a judge: python -m servo_campaign streams --runs 1000

activations: torque is switched on, from any place, with stale goals, with faults in every step.
streams: commands stream while faults come and go, the adapter is unplugged, the power dips.
kills: the driver is killed while it streams.
Run it in test/servos. It prints each violation with the seed of its run, and exits with 1 if there is one.
"""

from servo_campaign.activations import activations
from servo_campaign.kills import kills
from servo_campaign.streams import streams

__all__ = ['activations', 'kills', 'streams']
