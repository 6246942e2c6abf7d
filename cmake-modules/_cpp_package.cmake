# SPDX-License-Identifier: Apache-2.0
# Internal: the CMake package that a backend's Python package carries for programs in C++.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

# _backendkit_cpp_package(<target> <version> <directory> <component>)
# Creates the package `find_package(<package>)` of a backend and installs it below <directory>, the
# folder of the Python package, in share/cmake/<package>. It contains no absolute path: it finds
# everything relative to itself. Its functions have the backend's name in theirs, so that they do not
# clash with those of another backend or of BackendKit in the same project.
function(_backendkit_cpp_package target version directory component)
  get_target_property(device ${target} BACKENDKIT_DEVICE)
  get_target_property(package ${target} BACKENDKIT_PACKAGE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}-cmake)
  set(modules ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  configure_file(${modules}/_cpp_package_config.cmake.in ${folder}/${package}Config.cmake @ONLY)
  # Any newer version is accepted: which of a vendor's versions are compatible is not known here.
  write_basic_package_version_file(${folder}/${package}ConfigVersion.cmake VERSION ${version}
                                   COMPATIBILITY AnyNewerVersion)
  file(READ ${modules}/_torch_files.cmake functions)
  string(REPLACE "_backendkit_" "_${package}_" functions "${functions}")
  file(CONFIGURE OUTPUT ${folder}/torch_files.cmake CONTENT "${functions}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${modules}/_torch_files.cmake)
  install(
    FILES ${folder}/${package}Config.cmake ${folder}/${package}ConfigVersion.cmake
          ${folder}/torch_files.cmake ${modules}/find_torch.py
    DESTINATION ${directory}/share/cmake/${package}
    COMPONENT ${component})
endfunction()
