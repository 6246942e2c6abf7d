# SPDX-License-Identifier: Apache-2.0
# Each library: find_package first (a distribution's package), FetchContent second (a machine with a
# network and without the packages).

include(FetchContent)

macro(backendkit_fetch name repository tag)
  message(STATUS "BackendKit: ${name} is not installed; fetching it")
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${name})
endmacro()

find_package(cxxopts QUIET)
if(NOT TARGET cxxopts::cxxopts)
  backendkit_fetch(cxxopts https://github.com/jarro2783/cxxopts.git v3.1.1)
endif()

find_package(fmt QUIET)
if(NOT TARGET fmt::fmt-header-only)
  backendkit_fetch(fmt https://github.com/fmtlib/fmt.git 9.1.0)
endif()

find_package(tomlplusplus QUIET)
if(NOT TARGET tomlplusplus::tomlplusplus)
  backendkit_fetch(tomlplusplus https://github.com/marzer/tomlplusplus.git v3.3.0)
endif()

find_path(BACKENDKIT_MUSTACHE_INCLUDE kainjow/mustache.hpp)
mark_as_advanced(BACKENDKIT_MUSTACHE_INCLUDE)
add_library(backendkit_mustache INTERFACE)
if(BACKENDKIT_MUSTACHE_INCLUDE)
  target_include_directories(backendkit_mustache SYSTEM INTERFACE ${BACKENDKIT_MUSTACHE_INCLUDE})
else()
  backendkit_fetch(mustache https://github.com/kainjow/Mustache.git v4.1)
  file(COPY ${mustache_SOURCE_DIR}/mustache.hpp DESTINATION ${mustache_BINARY_DIR}/include/kainjow)
  target_include_directories(backendkit_mustache SYSTEM
                             INTERFACE ${mustache_BINARY_DIR}/include)
endif()

find_path(BACKENDKIT_DTL_INCLUDE dtl/dtl.hpp)
mark_as_advanced(BACKENDKIT_DTL_INCLUDE)
add_library(backendkit_dtl INTERFACE)
if(BACKENDKIT_DTL_INCLUDE)
  target_include_directories(backendkit_dtl SYSTEM INTERFACE ${BACKENDKIT_DTL_INCLUDE})
else()
  backendkit_fetch(dtl https://github.com/cubicdaiya/dtl.git v1.20)
  target_include_directories(backendkit_dtl SYSTEM INTERFACE ${dtl_SOURCE_DIR})
endif()

find_path(BACKENDKIT_YAML_INCLUDE yaml.h)
# The static library where there is one, so that the program runs on machines without libyaml.
find_library(BACKENDKIT_YAML_LIBRARY NAMES libyaml.a yaml)
mark_as_advanced(BACKENDKIT_YAML_INCLUDE BACKENDKIT_YAML_LIBRARY)
add_library(backendkit_yaml INTERFACE)
if(BACKENDKIT_YAML_INCLUDE AND BACKENDKIT_YAML_LIBRARY)
  target_include_directories(backendkit_yaml SYSTEM INTERFACE ${BACKENDKIT_YAML_INCLUDE})
  target_link_libraries(backendkit_yaml INTERFACE ${BACKENDKIT_YAML_LIBRARY})
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
