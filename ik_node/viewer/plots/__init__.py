# SPDX-License-Identifier: Apache-2.0
"""Plots of the last seconds, and a look back in time."""
