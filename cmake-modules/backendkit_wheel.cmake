# SPDX-License-Identifier: Apache-2.0
#[[.md:
## backendkit_wheel

Adds a target that builds the wheel of a backend.

```
backendkit_wheel(<target> BACKEND <backend> [OUTPUT_DIRECTORY <dir>] [LICENSE_FILES <file>...])
```

| argument | default | meaning |
|---|---|---|
| `<target>` | required | a build target, not in `all`: `cmake --build <build> --target <target>` |
| `BACKEND` | required | a target of `add_torch_backend()` |
| `OUTPUT_DIRECTORY` | `dist` in the build folder | where the wheel goes |
| `LICENSE_FILES` | see [wheels.md](wheels.md) | your licences, for the wheel's metadata |

Installs the backend's component into a staging folder and packages it with the generated
`setup.py`. Nothing is downloaded: the Python needs pip and setuptools 70.1 or newer. The same input
gives the same bytes. In a cross-compiled project the wheel is named after the target machine.
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
      _backendkit_fail(backendkit_wheel "LICENSE_FILES names '${license}', which is not a file.")
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
