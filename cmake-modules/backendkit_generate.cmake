# SPDX-License-Identifier: Apache-2.0
#[[.md:
## backendkit_generate

Adds the glue of a description to a target.

```
backendkit_generate(<target> DESCRIPTION <file> [OUTPUT_DIRECTORY <dir>] [SOURCES_VARIABLE <var>])
```

| argument | default | meaning |
|---|---|---|
| `<target>` | required | a target; the C++ files become its sources, their folder an include directory |
| `DESCRIPTION` | required | the description; if it or the installed PyTorch changes, CMake runs again |
| `OUTPUT_DIRECTORY` | `<build>/<target>-generated` | the folder of the files, which must be used for nothing else |
| `SOURCES_VARIABLE` | none | is set to the files that were added |

Runs `backendgen generate --list` at configure time to learn which files there will be, and adds one
custom command that generates them. Files that do not change are not rewritten; `.made` next to them
says when the command ran. Fails with backendgen's own words if the description, or a kernel that it
names, is wrong.
#]]
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch.cmake)

# _backendkit_run(<function> <what> <variable> <arguments>...)
# Runs backendgen; on failure ends the configuration with its screen, indented, after <what>.
function(_backendkit_run function what variable)
  get_target_property(backendgen BackendKit::backendgen IMPORTED_LOCATION)
  execute_process(
    COMMAND ${backendgen} ${ARGN}
    OUTPUT_VARIABLE output
    ERROR_VARIABLE errors
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(REGEX REPLACE "\n+$" "" errors "${errors}")
    string(REPLACE "\n" "\n  " errors "  ${errors}")
    _backendkit_fail(${function} "${what}\n${errors}")
  endif()
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

# The glue of process groups includes slim replacements of two headers of PyTorch. Without
# torch.distributed it is empty.
function(_backendkit_compile_groups files torch)
  list(FILTER files INCLUDE REGEX "/distributed\\.cpp$")
  if(NOT files)
    return()
  endif()
  _backendkit_torch_is_distributed(${torch} distributed)
  if(NOT distributed)
    set_property(SOURCE ${files} APPEND PROPERTY COMPILE_DEFINITIONS BACKENDKIT_WITHOUT_DISTRIBUTED)
    return()
  endif()
  get_target_property(headers BackendKit::runtime INTERFACE_INCLUDE_DIRECTORIES)
  set_property(SOURCE ${files} APPEND PROPERTY INCLUDE_DIRECTORIES
                                               ${headers}/backendkit/distributed/slim)
endfunction()

# Files are compiled in their order, and two cores share the three long ones evenly if that of process
# groups comes before the vendor's. They are linked in the same order: static objects of the vendor
# outlive those of the other generated files. This one has none that calls the vendor's functions.
function(_backendkit_put_groups_first target)
  set(groups ${ARGN})
  list(FILTER groups INCLUDE REGEX "/distributed\\.cpp$")
  if(groups)
    get_target_property(sources ${target} SOURCES)
    list(REMOVE_ITEM sources ${groups})
    set_property(TARGET ${target} PROPERTY SOURCES ${groups} ${sources})
  endif()
endfunction()

function(backendkit_generate target)
  _backendkit_parse(arg "" "DESCRIPTION;OUTPUT_DIRECTORY;SOURCES_VARIABLE" "" 1)
  if(NOT TARGET ${target})
    _backendkit_fail(backendkit_generate "there is no target '${target}'.")
  endif()
  if(NOT arg_DESCRIPTION)
    _backendkit_fail(backendkit_generate "'DESCRIPTION' needs a value.")
  endif()
  get_filename_component(description ${arg_DESCRIPTION} ABSOLUTE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}-generated)
  if(arg_OUTPUT_DIRECTORY)
    get_filename_component(output ${arg_OUTPUT_DIRECTORY} ABSOLUTE BASE_DIR
                           ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  _backendkit_find_torch(backendkit_generate)

  set(arguments generate ${description} --out ${output} --torch ${BACKENDKIT_TORCH_DIR})
  _backendkit_run(backendkit_generate "${description} has errors:" listing ${arguments} --list)
  string(REGEX REPLACE "\n$" "" listing "${listing}")
  string(REPLACE "\n" ";" files "${listing}")

  get_filename_component(site ${BACKENDKIT_TORCH_DIR} DIRECTORY)
  set(operators ${site}/torchgen/packaged/ATen/native/native_functions.yaml)
  if(NOT EXISTS ${operators})
    set(operators)
  endif()
  # The files keep their dates when they do not change, so they cannot tell Make that they are made.
  add_custom_command(
    OUTPUT ${output}/.made
    BYPRODUCTS ${files}
    COMMAND BackendKit::backendgen ${arguments}
    COMMAND ${CMAKE_COMMAND} -E touch ${output}/.made
    DEPENDS ${description} ${operators} ${BACKENDKIT_TORCH_DIR}/version.py BackendKit::backendgen
    COMMENT "Generating the glue of ${target}"
    VERBATIM)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${description})

  # The file that takes longest is the first of the glue: at the end, it would keep one core busy.
  set(longest ${files})
  list(FILTER longest INCLUDE REGEX "/fallback\\.cpp$")
  target_sources(${target} PRIVATE ${longest} ${files} ${output}/.made)
  _backendkit_put_groups_first(${target} ${files})
  target_include_directories(${target} PRIVATE ${output})
  _backendkit_compile_groups("${files}" ${BACKENDKIT_TORCH_DIR})
  set_target_properties(${target} PROPERTIES BACKENDKIT_GENERATED_DIRECTORY ${output})
  if(arg_SOURCES_VARIABLE)
    set(${arg_SOURCES_VARIABLE} ${files} PARENT_SCOPE)
  endif()
endfunction()
