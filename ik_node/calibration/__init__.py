# SPDX-License-Identifier: Apache-2.0
"""Calibration of an arm by touches of crosses on a printed sheet."""
