# SPDX-License-Identifier: Apache-2.0
"""From a request to joint targets."""
