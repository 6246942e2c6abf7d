# SPDX-License-Identifier: Apache-2.0
# A toolchain file: zig, which brings libc++ and the stubs of every glibc since 2.17, as the C and C++
# compiler. ZIG_FOLDER has the programs zig-cc, zig-c++, zig-ar and zig-ranlib that release.py writes for
# one architecture, BACKENDKIT_MACHINE.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG_FOLDER BACKENDKIT_MACHINE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${BACKENDKIT_MACHINE})
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_AR ${ZIG_FOLDER}/zig-ar)
  set(CMAKE_${language}_COMPILER_RANLIB ${ZIG_FOLDER}/zig-ranlib)
endforeach()
set(CMAKE_C_COMPILER ${ZIG_FOLDER}/zig-cc)
set(CMAKE_CXX_COMPILER ${ZIG_FOLDER}/zig-c++)
set(CMAKE_AR ${ZIG_FOLDER}/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${ZIG_FOLDER}/zig-ranlib CACHE FILEPATH "")
# zig strips, told by -s; this machine's strip does not know every architecture.
set(CMAKE_STRIP "" CACHE FILEPATH "")
# CMake takes every build with CMAKE_SYSTEM_NAME for a cross-compilation, so one for this machine needs
# something that starts programs, too.
set(CMAKE_CROSSCOMPILING_EMULATOR env)
if(NOT BACKENDKIT_MACHINE STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR
      qemu-${BACKENDKIT_MACHINE};-L;/usr/${BACKENDKIT_MACHINE}-linux-gnu)
endif()
# Nothing of this machine: neither headers nor libraries.
set(CMAKE_FIND_ROOT_PATH ${ZIG_FOLDER}/none)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
