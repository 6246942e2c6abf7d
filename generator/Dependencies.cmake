# SPDX-License-Identifier: Apache-2.0
# Each library: find_package first (a distribution's package), third_party/ second (an sdist or another
# release of BackendKit brings it), FetchContent third (a machine with a network).

include(FetchContent)
option(BACKENDKIT_BUNDLED "Take the libraries in third_party/, whatever is installed" OFF)
set(bundle ${PROJECT_SOURCE_DIR}/third_party)

macro(backendkit_fetch name repository tag)
  message(STATUS "BackendKit: ${name} is not installed; fetching it")
  # Some of these projects ask for a CMake that CMake 4 no longer knows.
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${name})
  unset(CMAKE_POLICY_VERSION_MINIMUM)
endmacro()

# backendkit_bundled(<target> <header> [<definition>...]): makes <target> of the headers in third_party/, if
# they are there and nothing has made it yet.
function(backendkit_bundled target header)
  if(NOT TARGET ${target} AND EXISTS ${bundle}/include/${header})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} SYSTEM INTERFACE ${bundle}/include)
    target_compile_definitions(${target} INTERFACE ${ARGN})
  endif()
endfunction()

if(NOT BACKENDKIT_BUNDLED)
  find_package(cxxopts QUIET)
  find_package(fmt QUIET)
  find_package(tomlplusplus QUIET)
endif()
backendkit_bundled(cxxopts::cxxopts cxxopts.hpp)
backendkit_bundled(fmt::fmt-header-only fmt/format.h FMT_HEADER_ONLY=1)
backendkit_bundled(tomlplusplus::tomlplusplus toml++/toml.h)
if(NOT TARGET cxxopts::cxxopts)
  backendkit_fetch(cxxopts https://github.com/jarro2783/cxxopts.git v3.1.1)
endif()
if(NOT TARGET fmt::fmt-header-only)
  backendkit_fetch(fmt https://github.com/fmtlib/fmt.git 9.1.0)
endif()
if(NOT TARGET tomlplusplus::tomlplusplus)
  backendkit_fetch(tomlplusplus https://github.com/marzer/tomlplusplus.git v3.3.0)
endif()

# fmt's code is compiled once: in each file that includes its headers it takes half of the compile time.
# A shared library of it will not do, because the program must run where there is none. The names in
# fmt.cpp are those of fmt 9.
get_target_property(includes fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
list(TRANSFORM includes REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1") # of a fmt that was fetched
set(version)
foreach(folder IN LISTS includes)
  if(EXISTS ${folder}/fmt/core.h)
    file(STRINGS ${folder}/fmt/core.h version REGEX "^#define FMT_VERSION 9....$")
  endif()
endforeach()
if(version)
  add_library(backendkit_fmt STATIC fmt.cpp)
  target_compile_features(backendkit_fmt PUBLIC cxx_std_20)
  target_include_directories(backendkit_fmt SYSTEM PUBLIC ${includes})
else()
  add_library(backendkit_fmt INTERFACE)
  target_link_libraries(backendkit_fmt INTERFACE fmt::fmt-header-only)
endif()

# backendkit_header(<header> <variable>): the folder that has a header of a library without a CMake
# package, installed or bundled.
function(backendkit_header header variable)
  if(NOT BACKENDKIT_BUNDLED)
    find_path(${variable} ${header})
    mark_as_advanced(${variable})
  endif()
  if(NOT ${variable} AND EXISTS ${bundle}/include/${header})
    set(${variable} ${bundle}/include PARENT_SCOPE)
  endif()
endfunction()

backendkit_header(kainjow/mustache.hpp BACKENDKIT_MUSTACHE_INCLUDE)
add_library(backendkit_mustache INTERFACE)
if(BACKENDKIT_MUSTACHE_INCLUDE)
  target_include_directories(backendkit_mustache SYSTEM INTERFACE ${BACKENDKIT_MUSTACHE_INCLUDE})
else()
  backendkit_fetch(mustache https://github.com/kainjow/Mustache.git v4.1)
  file(COPY ${mustache_SOURCE_DIR}/mustache.hpp DESTINATION ${mustache_BINARY_DIR}/include/kainjow)
  target_include_directories(backendkit_mustache SYSTEM
                             INTERFACE ${mustache_BINARY_DIR}/include)
endif()

backendkit_header(dtl/dtl.hpp BACKENDKIT_DTL_INCLUDE)
add_library(backendkit_dtl INTERFACE)
if(BACKENDKIT_DTL_INCLUDE)
  target_include_directories(backendkit_dtl SYSTEM INTERFACE ${BACKENDKIT_DTL_INCLUDE})
else()
  backendkit_fetch(dtl https://github.com/cubicdaiya/dtl.git v1.20)
  target_include_directories(backendkit_dtl SYSTEM INTERFACE ${dtl_SOURCE_DIR})
endif()

if(NOT BACKENDKIT_BUNDLED)
  find_path(BACKENDKIT_YAML_INCLUDE yaml.h)
  # The static library where there is one, so that the program runs on machines without libyaml.
  find_library(BACKENDKIT_YAML_LIBRARY NAMES libyaml.a yaml)
  mark_as_advanced(BACKENDKIT_YAML_INCLUDE BACKENDKIT_YAML_LIBRARY)
endif()
add_library(backendkit_yaml INTERFACE)
if(BACKENDKIT_YAML_INCLUDE AND BACKENDKIT_YAML_LIBRARY AND NOT BACKENDKIT_BUNDLED)
  target_include_directories(backendkit_yaml SYSTEM INTERFACE ${BACKENDKIT_YAML_INCLUDE})
  target_link_libraries(backendkit_yaml INTERFACE ${BACKENDKIT_YAML_LIBRARY})
elseif(EXISTS ${bundle}/libyaml/include/yaml.h)
  enable_language(C)
  file(GLOB sources ${bundle}/libyaml/src/*.c)
  add_library(yaml STATIC ${sources})
  target_include_directories(yaml SYSTEM PUBLIC ${bundle}/libyaml/include)
  target_compile_definitions(
    yaml PUBLIC YAML_DECLARE_STATIC
    PRIVATE YAML_VERSION_MAJOR=0 YAML_VERSION_MINOR=2 YAML_VERSION_PATCH=5
            YAML_VERSION_STRING="0.2.5")
  target_link_libraries(backendkit_yaml INTERFACE yaml)
else()
  set(BUILD_SHARED_LIBS OFF)
  set(BUILD_TESTING OFF)
  backendkit_fetch(yaml https://github.com/yaml/libyaml.git 0.2.5)
  target_link_libraries(backendkit_yaml INTERFACE yaml)
endif()

if(BACKENDKIT_BUILD_TESTING)
  find_package(Catch2 QUIET)
  add_library(backendkit_catch INTERFACE)
  if(NOT TARGET Catch2::Catch2)
    backendkit_fetch(Catch2 https://github.com/catchorg/Catch2.git v3.5.2)
  endif()
  if(TARGET Catch2::Catch2WithMain)
    target_link_libraries(backendkit_catch INTERFACE Catch2::Catch2WithMain)
  else()
    # Catch2 2 is one header; tests/generator/unit/main.cpp holds its main.
    target_link_libraries(backendkit_catch INTERFACE Catch2::Catch2)
  endif()
endif()
