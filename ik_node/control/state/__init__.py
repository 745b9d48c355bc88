# SPDX-License-Identifier: Apache-2.0
"""States of an arm, requests to it, reports and snapshots."""
