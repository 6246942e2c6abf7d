# SPDX-License-Identifier: Apache-2.0
# BackendKit's source tree within another project, by add_subdirectory() or FetchContent. Gives that
# project what find_package(BackendKit) gives, and no target, test, option or install rule beyond it.
#
# add_torch_backend() asks backendgen what there is to build, so the program is needed while the
# project is configured. A CMake of its own builds it: for the machine that builds, whatever the
# project is built for, and without the project's flags, standard and settings.
#   BACKENDKIT_BACKENDGEN         a backendgen of this version to take instead
#   BACKENDKIT_HOST_CXX_COMPILER  the compiler for this machine; the project's if it does not cross-compile

if(TARGET BackendKit::backendgen)
  return() # the project has BackendKit already
endif()

function(_backendkit_require_version program)
  execute_process(COMMAND ${program} --version OUTPUT_VARIABLE answer ERROR_QUIET
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT answer MATCHES "^backendgen ([0-9.]+)")
    message(FATAL_ERROR "BACKENDKIT_BACKENDGEN: '${program}' is no backendgen that runs here.")
  elseif(NOT CMAKE_MATCH_1 VERSION_EQUAL PROJECT_VERSION)
    message(FATAL_ERROR "BACKENDKIT_BACKENDGEN: '${program}' is version ${CMAKE_MATCH_1}, "
                        "but this source tree is BackendKit ${PROJECT_VERSION}.")
  endif()
endfunction()

# Sets, in the caller, <start>, the words before a CMake that is to know nothing of the target machine,
# and <settings>, for its command line. What the project says of where libraries are goes into <file>.
function(_backendkit_tool_settings file)
  set(names CMAKE_MAKE_PROGRAM CMAKE_CXX_COMPILER_LAUNCHER FETCHCONTENT_FULLY_DISCONNECTED)
  foreach(library CXXOPTS FMT TOMLPLUSPLUS MUSTACHE DTL YAML)
    list(APPEND names FETCHCONTENT_SOURCE_DIR_${library})
  endforeach()
  set(start ${CMAKE_COMMAND} -E env --unset=CMAKE_TOOLCHAIN_FILE)
  set(compiler ${BACKENDKIT_HOST_CXX_COMPILER})
  if(CMAKE_CROSSCOMPILING)
    foreach(name CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CMAKE_PREFIX_PATH)
      list(APPEND start --unset=${name})
    endforeach()
  else()
    list(APPEND names CMAKE_PREFIX_PATH)
    if(NOT compiler)
      set(compiler ${CMAKE_CXX_COMPILER})
    endif()
  endif()
  set(text "")
  foreach(name IN LISTS names)
    if(DEFINED ${name})
      string(APPEND text "set(${name} [==[${${name}}]==] CACHE STRING \"\" FORCE)\n")
    endif()
  endforeach()
  file(WRITE ${file} "${text}")
  set(settings -C ${file} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CONFIGURATION_TYPES=Release
               -DBACKENDKIT_BUILD_TESTING=OFF)
  if(compiler)
    list(APPEND settings -DCMAKE_CXX_COMPILER=${compiler})
  endif()
  set(start ${start} PARENT_SCOPE)
  set(settings ${settings} PARENT_SCOPE)
endfunction()

# Ends the configuration with the screen of a step that failed.
function(_backendkit_tool_step what)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE screen ERROR_VARIABLE screen
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(REGEX REPLACE "\n+$" "" screen "${screen}")
    string(REPLACE "\n" "\n  " screen "  ${screen}")
    string(CONCAT text "BackendKit: could not ${what} backendgen, which this project needs while it "
                  "is configured:\n${screen}\nIt is built for this machine. Name a C++20 compiler "
                  "with -DBACKENDKIT_HOST_CXX_COMPILER=<path>, or a backendgen "
                  "${PROJECT_VERSION} with -DBACKENDKIT_BACKENDGEN=<path>.")
    message(FATAL_ERROR "${text}")
  endif()
endfunction()

# Builds the program in <folder>; a second run builds what changed.
function(_backendkit_build_tool folder program)
  if(EXISTS ${folder}/CMakeCache.txt)
    load_cache(${folder} READ_WITH_PREFIX was_ CMAKE_GENERATOR CMAKE_HOME_DIRECTORY)
    if(NOT was_CMAKE_GENERATOR STREQUAL CMAKE_GENERATOR
       OR NOT was_CMAKE_HOME_DIRECTORY STREQUAL PROJECT_SOURCE_DIR)
      file(REMOVE_RECURSE ${folder})
    endif()
  endif()
  if(NOT EXISTS ${program})
    message(STATUS "BackendKit: building backendgen in ${folder}")
  endif()
  _backendkit_tool_settings(${folder}-settings.cmake)
  _backendkit_tool_step(configure ${start} ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} -B ${folder}
                        -G "${CMAKE_GENERATOR}" ${settings})
  set(parallel)
  if(NOT DEFINED ENV{CMAKE_BUILD_PARALLEL_LEVEL})
    cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
    set(parallel --parallel ${cores})
  endif()
  _backendkit_tool_step(build ${start} ${CMAKE_COMMAND} --build ${folder} --config Release --target
                        backendgen ${parallel})
endfunction()

if(BACKENDKIT_BACKENDGEN)
  get_filename_component(BACKENDKIT_EXECUTABLE ${BACKENDKIT_BACKENDGEN} ABSOLUTE BASE_DIR
                         ${CMAKE_SOURCE_DIR})
  _backendkit_require_version(${BACKENDKIT_EXECUTABLE})
else()
  set(tool ${PROJECT_BINARY_DIR}/host)
  set(BACKENDKIT_EXECUTABLE ${tool}/generator/backendgen)
  if(CMAKE_HOST_WIN32)
    string(APPEND BACKENDKIT_EXECUTABLE .exe)
  endif()
  _backendkit_build_tool(${tool} ${BACKENDKIT_EXECUTABLE})
  file(GLOB_RECURSE inputs ${PROJECT_SOURCE_DIR}/generator/*.* ${PROJECT_SOURCE_DIR}/templates/*.*)
  list(FILTER inputs EXCLUDE REGEX "__pycache__|\\.swp$|~$")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
endif()

set(BACKENDKIT_PROGRAMS "\"${BACKENDKIT_EXECUTABLE}\"")
configure_package_config_file(
  ${config} ${PROJECT_BINARY_DIR}/BackendKitConfig.cmake
  INSTALL_DESTINATION ${PROJECT_BINARY_DIR}
  INSTALL_PREFIX ${PROJECT_BINARY_DIR}
  PATH_VARS ${paths}
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BackendKitConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
include(${PROJECT_BINARY_DIR}/BackendKitConfig.cmake)
set_target_properties(BackendKit::backendgen BackendKit::runtime PROPERTIES IMPORTED_GLOBAL ON)

# find_package(BackendKit) of any part of the project finds this tree, before any other.
if(CMAKE_FIND_PACKAGE_REDIRECTS_DIR) # CMake 3.24
  file(WRITE ${CMAKE_FIND_PACKAGE_REDIRECTS_DIR}/BackendKitConfig.cmake
       "include(\"${PROJECT_BINARY_DIR}/BackendKitConfig.cmake\")\n")
  file(COPY ${PROJECT_BINARY_DIR}/BackendKitConfigVersion.cmake
       DESTINATION ${CMAKE_FIND_PACKAGE_REDIRECTS_DIR})
else()
  set(BackendKit_DIR ${PROJECT_BINARY_DIR} CACHE INTERNAL "The package file of the source tree")
endif()
