# SPDX-License-Identifier: Apache-2.0
# What `cpack -G DEB` and `cpack -G TGZ` make in a build folder.

set(BACKENDKIT_MAINTAINER "BackendKit developers <backendkit@lists.invalid>"
    CACHE STRING "The maintainer that the Debian package names")
set(CPACK_PACKAGE_NAME backendkit)
set(CPACK_PACKAGE_VENDOR BackendKit)
set(CPACK_PACKAGE_CONTACT ${BACKENDKIT_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "turns a description of a device into a PyTorch backend")
set(CPACK_PACKAGE_DESCRIPTION
    "A hardware vendor writes a runtime adapter and kernels. BackendKit generates
the rest of a PyTorch backend from a short description of the device: the C++
that registers the device and its operators, the Python package that PyTorch
loads, and its wheel.
.
This package has the program backendgen, the headers and the CMake package.")
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" system)
set(CPACK_PACKAGE_FILE_NAME backendkit-${PROJECT_VERSION}-${system})
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_UID 0)
set(CPACK_ARCHIVE_GID 0)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake (>= 3.22), g++, ninja-build, python3")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
if(NOT DEFINED CPACK_DEBIAN_PACKAGE_DEPENDS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()

# What Debian wants of a package beyond the files that `cmake --install` installs.
set(BACKENDKIT_DEBIAN ${PROJECT_BINARY_DIR}/debian)
configure_file(release/changelog.in ${BACKENDKIT_DEBIAN}/changelog @ONLY)
file(GLOB texts ${PROJECT_SOURCE_DIR}/third_party/*.txt)
set(BACKENDKIT_LICENCES)
foreach(text IN LISTS texts)
  get_filename_component(name ${text} NAME_WE)
  file(READ ${text} content)
  # Debian has the Apache License itself in a file of its own, to which the copyright file refers.
  string(FIND "${content}" "---- LLVM Exceptions" start)
  if(start GREATER 0)
    string(SUBSTRING "${content}" ${start} -1 content)
  endif()
  string(APPEND BACKENDKIT_LICENCES "\n==== ${name}\n\n${content}")
endforeach()
configure_file(release/copyright.in ${BACKENDKIT_DEBIAN}/copyright @ONLY)
configure_file(release/debian.cmake.in ${BACKENDKIT_DEBIAN}/debian.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS ${BACKENDKIT_DEBIAN}/debian.cmake)
include(CPack)
