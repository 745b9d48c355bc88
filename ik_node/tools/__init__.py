# SPDX-License-Identifier: Apache-2.0
"""Offline work: tables of goals, retargeting, reach, placement, and the programs for them."""
