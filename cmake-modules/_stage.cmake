# SPDX-License-Identifier: Apache-2.0
# Internal: installs the Python package of a backend in a folder of its own. If included, this file
# defines _backendkit_stage(); run with `cmake -P`, it does at build time what that function planned.
include_guard(GLOBAL)

# _backendkit_stage(<variable> <backend> <folder>)
# Sets <variable> to a command that installs the component of a backend and moves its Python package
# from PACKAGE_DIRECTORY to <folder>/<package>, with nothing else in <folder>.
function(_backendkit_stage variable backend folder)
  get_target_property(component ${backend} BACKENDKIT_COMPONENT)
  get_target_property(package ${backend} BACKENDKIT_PACKAGE)
  get_target_property(directory ${backend} BACKENDKIT_PACKAGE_DIRECTORY)
  set(${variable}
      ${CMAKE_COMMAND} -D BUILD=${CMAKE_BINARY_DIR} -D CONFIG=$<CONFIG> -D COMPONENT=${component} -D
      PACKAGE=${package} -D PACKAGE_DIRECTORY=${directory} -D FOLDER=${folder} -P
      ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()
endif()

cmake_minimum_required(VERSION 3.22...4.0)
set(prefix ${FOLDER}-install)
set(install ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component ${COMPONENT})
if(CONFIG)
  list(APPEND install --config ${CONFIG})
endif()
unset(ENV{DESTDIR}) # It would move the files elsewhere.
file(REMOVE_RECURSE ${FOLDER} ${prefix})
execute_process(COMMAND ${install} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${FOLDER})
file(RENAME ${prefix}/${PACKAGE_DIRECTORY} ${FOLDER}/${PACKAGE})
file(REMOVE_RECURSE ${prefix})
