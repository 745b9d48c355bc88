# SPDX-License-Identifier: Apache-2.0
"""Tracks: curves along which goals move."""
