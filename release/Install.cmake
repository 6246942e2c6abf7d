# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs. In a wheel, CMAKE_INSTALL_PREFIX is the folder of the Python package;
# the program, its manual page and completions go where Python puts programs and their data.

set(package ${CMAKE_INSTALL_DATAROOTDIR}/cmake/BackendKit)
set(BACKENDKIT_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR})
set(BACKENDKIT_MODULES ${package})
set(BACKENDKIT_LICENSE ${CMAKE_INSTALL_DATAROOTDIR}/backendkit/LICENSE)
if(SKBUILD)
  set(programs ${SKBUILD_SCRIPTS_DIR})
  set(data ${SKBUILD_DATA_DIR}/share)
  # From the package in site-packages: `pip install --target`, `--home`, an environment or `--user`;
  # the two schemes of Windows. backendkit.executable() tries the same places.
  set(BACKENDKIT_PROGRAMS)
  foreach(place ../bin ../../../bin ../../../../bin ../../../Scripts ../../Scripts)
    string(APPEND BACKENDKIT_PROGRAMS "\n    \"\${PACKAGE_PREFIX_DIR}/${place}/${program}\"")
  endforeach()
else()
  set(programs ${CMAKE_INSTALL_BINDIR})
  set(data ${CMAKE_INSTALL_DATAROOTDIR})
  set(BACKENDKIT_PROGRAMS "\"\${PACKAGE_PREFIX_DIR}/${programs}/${program}\"")
  if(IS_ABSOLUTE ${programs})
    set(BACKENDKIT_PROGRAMS "\"${programs}/${program}\"")
  endif()
endif()
configure_package_config_file(
  ${config} ${PROJECT_BINARY_DIR}/install/BackendKitConfig.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS ${paths}
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)

install(TARGETS backendgen RUNTIME DESTINATION ${programs})
install(DIRECTORY include/backendkit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY cmake-modules/ DESTINATION ${package} FILES_MATCHING PATTERN "*.cmake"
        PATTERN "_*.cmake.in" PATTERN "*.py")
install(DIRECTORY tests/device/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/backendkit/device_tests
        FILES_MATCHING PATTERN "*.py" PATTERN "*.html")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/backendkit)
install(FILES ${PROJECT_BINARY_DIR}/install/BackendKitConfig.cmake
              ${PROJECT_BINARY_DIR}/BackendKitConfigVersion.cmake DESTINATION ${package})

if(BACKENDKIT_PAGES)
  install(FILES ${BACKENDKIT_PAGES}/backendgen.1 DESTINATION ${data}/man/man1)
  install(FILES ${BACKENDKIT_PAGES}/backendgen DESTINATION ${data}/bash-completion/completions)
  install(FILES ${BACKENDKIT_PAGES}/_backendgen DESTINATION ${data}/zsh/site-functions)
  install(FILES ${BACKENDKIT_PAGES}/backendgen.fish DESTINATION ${data}/fish/vendor_completions.d)
endif()
