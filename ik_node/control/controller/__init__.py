# SPDX-License-Identifier: Apache-2.0
"""One state machine for an arm: requests in, setpoints and reports out."""
