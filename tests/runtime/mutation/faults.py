# SPDX-License-Identifier: Apache-2.0
"""Faults that a backend may have, and the device tests that notice each."""

from faults_of_devices import GRAPHS, MEMORY, STATE, SYNCHRONIZATION, VALUES
from faults_of_groups import ARITHMETIC, BYTES, ORDER, WORKS
from faults_of_programs import (
    CPU_PROGRAMS,
    DRIVER,
    LIKENESS,
    MODULES,
    PLACE,
    PROCESSES,
    REGISTRATION,
)

FAULTS = [
    *SYNCHRONIZATION,
    *STATE,
    *MEMORY,
    *GRAPHS,
    *VALUES,
    *PROCESSES,
    *REGISTRATION,
    *DRIVER,
    *MODULES,
    *CPU_PROGRAMS,
    *PLACE,
    *LIKENESS,
    *ORDER,
    *BYTES,
    *ARITHMETIC,
    *WORKS,
]
