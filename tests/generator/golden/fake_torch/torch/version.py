# SPDX-License-Identifier: Apache-2.0
__version__ = '2.13.0+fake'
