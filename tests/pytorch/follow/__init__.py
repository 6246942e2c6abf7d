# SPDX-License-Identifier: Apache-2.0
"""What a new PyTorch release changes in what BackendKit depends on; `./dev follow`."""
