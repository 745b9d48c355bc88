# SPDX-License-Identifier: Apache-2.0
"""An arm of servos: what may be commanded when, on one thread that owns the port."""
