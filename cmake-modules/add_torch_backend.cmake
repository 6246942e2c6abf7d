# SPDX-License-Identifier: Apache-2.0
#[[.md:
## add_torch_backend

Builds a PyTorch backend from its description.

```
add_torch_backend(<target>
  [DESCRIPTION <file>]
  [SOURCES <file>...]
  [LIBRARIES <target>...]
  [PACKAGE_DIRECTORY <dir>]
  [COMPONENT <name>]
  [WHEEL])
```

| argument | default | meaning |
|---|---|---|
| `<target>` | required | a shared library target; `<target>::<target>` aliases it; must be the `name` in the description |
| `DESCRIPTION` | `backend.toml` next to this CMakeLists.txt | the description |
| `SOURCES` | none | your C++; must define what the generated `kernels.h` declares |
| `LIBRARIES` | none | linked `PRIVATE`; for anything else call `target_link_libraries(<target> ...)` afterwards, as usual |
| `PACKAGE_DIRECTORY` | `package` of the description | where the Python package is installed, below the install prefix; the wheel does not depend on it |
| `COMPONENT` | `<target>` | install component |
| `WHEEL` | off | adds the target `<target>_wheel` |

In order, it checks the arguments; finds Python and PyTorch, and rejects a PyTorch that the
compiler's output cannot be linked with; runs `backendgen check`; creates the library `lib<package>`
with hidden visibility; generates the glue; links PyTorch and the headers; sets the link options;
adds the install rules. It prints one line:
`-- BackendKit: foo, 2 kernels, PyTorch 2.13.0, 12 generated files`.

- The description's `header` is searched for next to the description, in `csrc/` there, and in the
  include folders of `LIBRARIES`.
- `SOURCES` are compiled with `-Werror=missing-declarations`: a function that no header declares is
  an error, so that a kernel whose signature differs from `kernels.h` does not silently become an
  overload. Make your own functions `static`, put them in an unnamed namespace, or declare them in a
  header. `set_source_files_properties(FILE PROPERTIES COMPILE_OPTIONS "")` turns the option off for
  a file.
- From about 200 kernels on, the headers that the glue includes are precompiled, for the glue only.
  `set_property(SOURCE FILES PROPERTY SKIP_PRECOMPILE_HEADERS)`, after the call, gives them to these
  `SOURCES`, too: files with kernels compile in half of the time then, even if they lack an
  `#include`. `-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON` turns all of that off.
- The library is linked with `-z defs`: a missing kernel is a link error, not a failed import. Its
  RPATH is `$ORIGIN` (`@loader_path` on macOS, none on Windows). A release build has no symbols.
  Settings that a project makes for all its libraries (`CMAKE_INSTALL_RPATH`,
  `CMAKE_INSTALL_RPATH_USE_LINK_PATH`, `CMAKE_<CONFIG>_POSTFIX`) do not affect this one.
- In a release build, the generated C++ is compiled with `-O2` or `-Os` where the project's flags say
  `-O3`. Your `SOURCES` keep your flags.
- Absolute paths are mapped to short ones, so that the same input gives the same bytes in any
  folder.
- The install rules write `<package>/lib/<PyTorch minor>/lib<package>.so`, the generated Python,
  [BackendKit's licence](wheels.md), and your own Python: the folder `<package>` next to the
  description. If one of your files has the name of a generated one, that is an error.
  `<package>/share/cmake` is the CMake package with which [programs in C++](cpp.md) find the
  library.

A PyTorch that is newer than all [tested releases](compatibility.md) causes a CMake warning. The
build continues: an incompatibility shows as a compiler error, or not at all.

Properties of the target: `BACKENDKIT_DEVICE`, `BACKENDKIT_PACKAGE`, `BACKENDKIT_MODULE`,
`BACKENDKIT_COMPONENT`, `BACKENDKIT_PACKAGE_DIRECTORY`, `BACKENDKIT_PROJECT_DIRECTORY`,
`BACKENDKIT_GENERATED_DIRECTORY`.

Its parts are the functions below, which can be used separately.
#]]
include_guard(GLOBAL)
include(CheckLinkerFlag)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_cpp_package.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/backendkit_generate.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/backendkit_link_torch.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/backendkit_wheel.cmake)

# Fails for a source that does not exist, and suggests the nearest name in its folder.
function(_backendkit_require_sources)
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    get_source_file_property(generated ${source} GENERATED)
    if(IS_DIRECTORY ${path})
      _backendkit_fail(add_torch_backend "SOURCES names '${source}', which is a folder.")
    endif()
    if(EXISTS ${path} OR generated OR source MATCHES "\\$<")
      continue()
    endif()
    get_filename_component(folder ${path} DIRECTORY)
    get_filename_component(stem ${path} NAME_WE)
    string(REGEX REPLACE "s$" "" stem "${stem}")
    file(GLOB near RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/${stem}*.c*)
    list(LENGTH near count)
    set(hint "")
    if(count EQUAL 1)
      set(hint "\nDid you mean '${near}'?")
    endif()
    string(CONCAT text "SOURCES names '${source}', which does not exist in "
                  "${CMAKE_CURRENT_SOURCE_DIR}.${hint}")
    _backendkit_fail(add_torch_backend "${text}")
  endforeach()
endfunction()

# Fails if a file of the vendor's Python folder has the name of a generated one.
function(_backendkit_refuse_clashes generated own)
  file(GLOB_RECURSE files RELATIVE ${own} ${own}/*)
  foreach(file IN LISTS files)
    if("${generated}/${file}" IN_LIST ARGN)
      get_filename_component(package ${own} NAME)
      string(CONCAT text "'${package}/${file}' has the name of a generated file.\n"
                    "Put your Python in another file and name it in 'imports' of the description.")
      _backendkit_fail(add_torch_backend "${text}")
    endif()
  endforeach()
endfunction()

function(_backendkit_compile_own target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(option -Werror=missing-declarations)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT MSVC)
    set(option -Werror=missing-prototypes)
  else()
    return()
  endif()
  foreach(source IN LISTS ARGN)
    if(source MATCHES "\\.(cc|cpp|cxx|C)$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${option})
    endif()
  endforeach()
endfunction()

# Each file of registrations includes the same headers of PyTorch, which take most of its compile
# time. Precompiling them takes as long as two such files. The vendor's sources include what they
# need; they get the precompiled header only where the vendor clears the property.
function(_backendkit_precompile target own generated)
  set(registrations ${generated})
  list(FILTER registrations INCLUDE REGEX "/register_kernels_[0-9]+\\.cpp$")
  list(LENGTH registrations count)
  if(count LESS 4)
    return()
  endif()
  list(REMOVE_ITEM generated ${registrations})
  list(FILTER generated INCLUDE REGEX "\\.cpp$")
  list(FILTER own INCLUDE REGEX "\\.(cc|cpp|cxx|C)$")
  set_source_files_properties(${generated} ${own} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_precompile_headers(${target} PRIVATE <backendkit/precompiled.h>)
endfunction()

# The glue calls functions and has no loops to speed up, and a wheel has it once for each PyTorch: -O3
# makes it larger. So does -O2 the files that are large, whatever the kernels. GCC's -Os inlines too
# little for them; with the parameter it is as fast as -O2 and an eighth smaller. A process group waits
# for other processes: without garbage collections and seven passes, which do not make the wheel
# smaller, GCC compiles it in a fifth less of the time, and takes no more memory than for the fallback.
# A precompiled header serves only what is compiled with the same optimization.
function(_backendkit_compile_glue target)
  get_target_property(precompiled ${target} PRECOMPILE_HEADERS)
  if(MSVC OR NOT CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    return()
  endif()
  foreach(source IN LISTS ARGN)
    if(source MATCHES "\\.cpp$" AND NOT (precompiled AND source MATCHES "/register_kernels_"))
      set(options -O2)
      if(source MATCHES "/(backend|distributed|fallback)\\.cpp$")
        set(options -Os)
      endif()
      if(source MATCHES "/(backend|fallback)\\.cpp$" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        list(APPEND options --param=max-inline-insns-size=14)
      elseif(source MATCHES "/distributed\\.cpp$" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        list(APPEND options --param=ggc-min-heapsize=700000)
        foreach(pass ipa-cp ipa-icf ipa-modref ipa-sra schedule-insns2 tree-pta tree-vrp)
          list(APPEND options -fno-${pass})
        endforeach()
      endif()
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS
                                                    "$<$<CONFIG:Release>:${options}>")
    endif()
  endforeach()
endfunction()

# What a project sets for all its libraries must not add a path of this machine to this one, nor
# rename it: the Python package opens it by its name.
function(_backendkit_set_link_options target)
  foreach(kind DEBUG RELEASE RELWITHDEBINFO MINSIZEREL)
    set_target_properties(${target} PROPERTIES ${kind}_POSTFIX "")
  endforeach()
  set_target_properties(
    ${target}
    PROPERTIES CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               BUILD_WITH_INSTALL_RPATH ON
               INSTALL_RPATH_USE_LINK_PATH OFF
               POSITION_INDEPENDENT_CODE ON)
  if(APPLE)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "@loader_path")
  elseif(UNIX)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
    target_link_options(${target} PRIVATE LINKER:-z,defs)
    if(BACKENDKIT_DEBUG_SYMBOLS)
      # `backendgen wheel --debug-symbols` moves them into a file, which the build ID names.
      target_compile_options(${target} PRIVATE -g)
      target_link_options(${target} PRIVATE LINKER:--build-id=sha1)
    else()
      target_link_options(${target} PRIVATE $<$<CONFIG:Release,MinSizeRel>:LINKER:-s>)
    endif()
    # Functions of one template are in sections of their own. Sorted by name, they are neighbours, and
    # the wheel's compression finds what they repeat.
    set(CMAKE_REQUIRED_QUIET ON)
    check_linker_flag(CXX LINKER:--sort-section=name BACKENDKIT_LINKER_SORTS)
    if(BACKENDKIT_LINKER_SORTS)
      target_link_options(${target} PRIVATE $<$<CONFIG:Release>:LINKER:--sort-section=name>)
    endif()
  endif()
endfunction()

# TORCH_CHECK puts __FILE__ into the library, and debug information contains paths too. Of ccache with
# a base_dir, the compiler gets paths relative to the build folder, whose depth must not show either.
# Of a folder that is reached through a link, GCC takes the real path where that is shorter. Of
# several maps that match, the compiler takes the last.
function(_backendkit_map_paths target torch)
  if(MSVC)
    return()
  endif()
  get_target_property(headers BackendKit::runtime INTERFACE_INCLUDE_DIRECTORIES)
  set(maps ${PROJECT_SOURCE_DIR}=. ${CMAKE_BINARY_DIR}=build)
  set(name torch)
  foreach(folder IN LISTS torch headers)
    file(RELATIVE_PATH relative ${CMAKE_BINARY_DIR} ${folder})
    file(REAL_PATH ${folder} real)
    list(APPEND maps ${folder}=${name} ${relative}=${name} ${real}=${name})
    set(name backendkit)
  endforeach()
  foreach(map IN LISTS maps)
    target_compile_options(${target} PRIVATE -ffile-prefix-map=${map})
  endforeach()
endfunction()

function(add_torch_backend target)
  _backendkit_parse(arg "WHEEL" "DESCRIPTION;PACKAGE_DIRECTORY;COMPONENT" "SOURCES;LIBRARIES" 1)
  if(TARGET ${target})
    _backendkit_fail(add_torch_backend "a target '${target}' exists already.")
  endif()
  _backendkit_require_sources(${arg_SOURCES})
  if(IS_ABSOLUTE "${arg_PACKAGE_DIRECTORY}")
    string(CONCAT text "PACKAGE_DIRECTORY is a folder below the install prefix, not "
                  "'${arg_PACKAGE_DIRECTORY}'.")
    _backendkit_fail(add_torch_backend "${text}")
  endif()
  set(description ${CMAKE_CURRENT_SOURCE_DIR}/backend.toml)
  if(arg_DESCRIPTION)
    get_filename_component(description ${arg_DESCRIPTION} ABSOLUTE)
  endif()
  if(NOT EXISTS ${description})
    string(CONCAT text "found no description at\n  ${description}\n"
                  "Create one with 'backendgen new', or name it with DESCRIPTION.")
    _backendkit_fail(add_torch_backend "${text}")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CXX IN_LIST languages)
    _backendkit_fail(add_torch_backend "needs C++.\nEnable it: project(<name> LANGUAGES CXX).")
  endif()
  _backendkit_find_torch(add_torch_backend)
  get_filename_component(name ${description} NAME)
  _backendkit_run(add_torch_backend "${name} has errors:" json check ${description} --format json
                  --torch ${BACKENDKIT_TORCH_DIR})
  foreach(key name package module version kernels library_directory torch_newest_tested)
    string(JSON ${key} GET "${json}" ${key})
  endforeach()
  _backendkit_warn_if_newer(add_torch_backend ${torch_newest_tested})
  if(NOT name STREQUAL target)
    string(CONCAT text "the target is '${target}' but backend.toml names the device '${name}'.")
    _backendkit_fail(add_torch_backend "${text}")
  endif()

  add_library(${target} SHARED ${arg_SOURCES})
  add_library(${target}::${target} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${package} BACKENDKIT_DEVICE ${name}
                                             BACKENDKIT_PACKAGE ${package}
                                             BACKENDKIT_MODULE ${module})
  get_filename_component(folder ${description} DIRECTORY)
  target_include_directories(${target} PRIVATE ${folder} ${folder}/csrc)
  backendkit_generate(${target} DESCRIPTION ${description} SOURCES_VARIABLE files)
  backendkit_link_torch(${target})
  target_link_libraries(${target} PRIVATE BackendKit::runtime ${arg_LIBRARIES})
  _backendkit_compile_own(${target} ${arg_SOURCES})
  _backendkit_precompile(${target} "${arg_SOURCES}" "${files}")
  _backendkit_compile_glue(${target} ${files})
  _backendkit_set_link_options(${target})
  _backendkit_map_paths(${target} ${BACKENDKIT_TORCH_DIR})

  get_target_property(generated ${target} BACKENDKIT_GENERATED_DIRECTORY)
  _backendkit_refuse_clashes(${generated}/python/${package} ${folder}/${package} ${files})
  if(NOT arg_COMPONENT)
    set(arg_COMPONENT ${target})
  endif()
  if(NOT arg_PACKAGE_DIRECTORY)
    set(arg_PACKAGE_DIRECTORY ${package})
  endif()
  set_target_properties(
    ${target} PROPERTIES BACKENDKIT_COMPONENT ${arg_COMPONENT}
                         BACKENDKIT_PACKAGE_DIRECTORY ${arg_PACKAGE_DIRECTORY}
                         BACKENDKIT_PROJECT_DIRECTORY ${folder})
  string(REGEX REPLACE "^[^/]+" ${arg_PACKAGE_DIRECTORY} libraries ${library_directory})
  install(
    TARGETS ${target}
    RUNTIME DESTINATION ${libraries} COMPONENT ${arg_COMPONENT}
    LIBRARY DESTINATION ${libraries} COMPONENT ${arg_COMPONENT}
    ARCHIVE DESTINATION ${libraries} COMPONENT ${arg_COMPONENT} EXCLUDE_FROM_ALL)
  install(DIRECTORY ${generated}/python/${package}/ DESTINATION ${arg_PACKAGE_DIRECTORY}
          COMPONENT ${arg_COMPONENT})
  # The library and the Python contain code of BackendKit, whose licence goes with them.
  get_target_property(license BackendKit::runtime BACKENDKIT_LICENSE)
  install(FILES ${license} DESTINATION ${arg_PACKAGE_DIRECTORY} COMPONENT ${arg_COMPONENT}
          RENAME LICENSE.BackendKit)
  if(EXISTS ${folder}/${package})
    install(
      DIRECTORY ${folder}/${package}/
      DESTINATION ${arg_PACKAGE_DIRECTORY}
      COMPONENT ${arg_COMPONENT}
      PATTERN __pycache__ EXCLUDE
      PATTERN "*.py[co]" EXCLUDE)
  endif()
  _backendkit_cpp_package(${target} ${version} ${arg_PACKAGE_DIRECTORY} ${arg_COMPONENT})
  if(arg_WHEEL)
    backendkit_wheel(${target}_wheel BACKEND ${target})
  endif()

  list(LENGTH files count)
  string(CONCAT line "BackendKit: ${name}, ${kernels} kernels, PyTorch ${BACKENDKIT_TORCH_VERSION}, "
                "${count} generated files")
  message(STATUS "${line}")
endfunction()
