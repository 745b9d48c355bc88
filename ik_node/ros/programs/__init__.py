# SPDX-License-Identifier: Apache-2.0
"""Small programs: send a goal, publish a track, keyboard teleoperation."""
