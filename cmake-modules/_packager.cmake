# SPDX-License-Identifier: Apache-2.0
# Internal, run with `cmake -P` before the wheel in FOLDER is packaged: checks that PYTHON has the
# packages for that, and adds the licences: LICENSES, files separated by `|`, or else those that
# setuptools would find in PROJECT.

cmake_minimum_required(VERSION 3.22...4.0)

function(_backendkit_installed_version name variable)
  execute_process(
    COMMAND ${PYTHON} -c "import importlib.metadata as m; print(m.version('${name}'))"
    OUTPUT_VARIABLE version
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

_backendkit_installed_version(pip pip)
if(pip STREQUAL "")
  message(FATAL_ERROR "backendkit_wheel(): found no pip in ${PYTHON}.\nInstall it there:\n"
                      "  ${PYTHON} -m ensurepip --upgrade")
endif()
_backendkit_installed_version(setuptools setuptools)
if(setuptools STREQUAL "" OR setuptools VERSION_LESS 70.1)
  set(found "setuptools ${setuptools}")
  if(setuptools STREQUAL "")
    set(found "none")
  endif()
  message(FATAL_ERROR "backendkit_wheel(): needs setuptools 70.1 or newer, found ${found} in "
                      "${PYTHON}.\nInstall it there:\n"
                      "  ${PYTHON} -m pip install \"setuptools>=70.1\"")
endif()

string(REPLACE "|" ";" licenses "${LICENSES}")
if(NOT licenses)
  file(GLOB licenses LIST_DIRECTORIES OFF ${PROJECT}/LICEN[CS]E* ${PROJECT}/COPYING*
       ${PROJECT}/NOTICE* ${PROJECT}/AUTHORS*)
endif()
file(COPY ${licenses} DESTINATION ${FOLDER})
