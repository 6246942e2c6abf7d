# SPDX-License-Identifier: Apache-2.0
#[[.rst:
backendkit_wheel
----------------

Adds a target that builds the wheel of a backend::

  backendkit_wheel(<target> BACKEND <backend> [OUTPUT_DIRECTORY <dir>] [LICENSE_FILES <file>...])

``<target>``
  A build target, not part of ``all``: ``cmake --build <build> --target <target>``.
``BACKEND``
  A target of ``add_torch_backend()``.
``OUTPUT_DIRECTORY``
  Where the wheel goes; ``dist`` below the build folder by default.
``LICENSE_FILES``
  Your licence, for the wheel's metadata; by default the files beside the description whose names begin
  with ``LICENSE``, ``LICENCE``, ``COPYING``, ``NOTICE`` or ``AUTHORS``.

Installs the backend's component into a staging folder and packages that with the generated
``setup.py``: nothing is downloaded, and nothing of the environment is used but pip and setuptools,
70.1 or newer, which the build refuses to do without. The same input gives the same bytes. In a
cross-compiled project the wheel is named after the target machine.
#]]
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_stage.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch.cmake)

function(backendkit_wheel target)
  _backendkit_parse(arg "" "BACKEND;OUTPUT_DIRECTORY" "LICENSE_FILES" 1)
  _backendkit_require_backend(backendkit_wheel "${arg_BACKEND}")
  if(TARGET ${target})
    _backendkit_fail(backendkit_wheel "a target '${target}' exists already.")
  endif()
  _backendkit_find_torch(backendkit_wheel)
  set(output ${CMAKE_BINARY_DIR}/dist)
  if(arg_OUTPUT_DIRECTORY)
    get_filename_component(output ${arg_OUTPUT_DIRECTORY} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
  endif()
  get_target_property(generated ${arg_BACKEND} BACKENDKIT_GENERATED_DIRECTORY)
  set(stage ${CMAKE_CURRENT_BINARY_DIR}/${target}-stage)
  get_target_property(project ${arg_BACKEND} BACKENDKIT_PROJECT_DIRECTORY)
  set(licenses)
  foreach(license IN LISTS arg_LICENSE_FILES)
    get_filename_component(path ${license} ABSOLUTE)
    if(NOT EXISTS ${path} OR IS_DIRECTORY ${path})
      _backendkit_fail(backendkit_wheel "LICENSE_FILES names '${license}', which is no file.")
    endif()
    list(APPEND licenses ${path})
  endforeach()
  list(JOIN licenses "|" licenses)
  set(platform)
  if(CMAKE_CROSSCOMPILING)
    # The wheel is named after the machine it is for; Python reads this where it is cross-compiled.
    string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
    set(platform _PYTHON_HOST_PLATFORM=${system}-${CMAKE_SYSTEM_PROCESSOR})
  endif()
  _backendkit_stage(stage_command ${arg_BACKEND} ${stage})
  add_custom_target(
    ${target}
    COMMAND ${stage_command}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${generated}/packaging ${stage}
    COMMAND ${CMAKE_COMMAND} -D PYTHON=${BACKENDKIT_PYTHON} -D LICENSES=${licenses} -D
            PROJECT=${project} -D FOLDER=${stage} -P
            ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/_packager.cmake
    COMMAND ${CMAKE_COMMAND} -E env ${platform}
            ${BACKENDKIT_PYTHON} -m pip wheel --quiet --no-deps --no-build-isolation
            --disable-pip-version-check --wheel-dir ${output} ${stage}
    DEPENDS ${arg_BACKEND}
    COMMENT "Building the wheel of ${arg_BACKEND} in ${output}"
    VERBATIM)
endfunction()
