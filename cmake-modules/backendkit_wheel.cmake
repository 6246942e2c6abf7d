# SPDX-License-Identifier: Apache-2.0
#[[.rst:
backendkit_wheel
----------------

Adds a target that builds the wheel of a backend::

  backendkit_wheel(<target> BACKEND <backend> [OUTPUT_DIRECTORY <dir>])

``<target>``
  A build target, not part of ``all``: ``cmake --build <build> --target <target>``.
``BACKEND``
  A target of ``add_torch_backend()``.
``OUTPUT_DIRECTORY``
  Where the wheel goes; ``dist`` below the build folder by default.

Installs the backend's component into a staging folder and packages that with the generated
``setup.py``: nothing is downloaded, and nothing of the environment is used but pip and setuptools,
70.1 or newer. The same input gives the same bytes.
#]]
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_stage.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch.cmake)

function(backendkit_wheel target)
  _backendkit_parse(arg "" "BACKEND;OUTPUT_DIRECTORY" "" 1)
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
  _backendkit_stage(stage_command ${arg_BACKEND} ${stage})
  add_custom_target(
    ${target}
    COMMAND ${stage_command}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${generated}/packaging ${stage}
    # In the environment, since a pip before 22.2 refuses the option; without it, an old setuptools
    # is met as an ImportError in setup.py.
    COMMAND ${CMAKE_COMMAND} -E env PIP_CHECK_BUILD_DEPENDENCIES=1
            ${BACKENDKIT_PYTHON} -m pip wheel --quiet --no-deps --no-build-isolation
            --disable-pip-version-check --wheel-dir ${output} ${stage}
    DEPENDS ${arg_BACKEND}
    COMMENT "Building the wheel of ${arg_BACKEND} in ${output}"
    VERBATIM)
endfunction()
