# SPDX-License-Identifier: Apache-2.0
"""Recording what happens, and replaying it as a ghost."""
