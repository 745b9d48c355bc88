# SPDX-License-Identifier: Apache-2.0
"""Small programs: go to a goal, play a track, drive with the keyboard."""
