# SPDX-License-Identifier: Apache-2.0
# Internal: the PyTorch of the active Python, read from its files. It is neither imported nor looked
# for with find_package(Torch), which fails for a CUDA build on a machine without CUDA.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_oldest_torch.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_platform.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch_files.cmake)

# _backendkit_find_torch(<function>)
# Sets, in the caller:
#   BACKENDKIT_PYTHON          the interpreter
#   BACKENDKIT_TORCH_DIR       its folder `torch`
#   BACKENDKIT_TORCH_VERSION   2.13.0
#   BACKENDKIT_TORCH_CXX11_ABI 0 or 1, for _GLIBCXX_USE_CXX11_ABI; empty if it does not apply
#   BACKENDKIT_TORCH_STANDARD  the C++ standard that its headers require, 20 or later
# If BACKENDKIT_TORCH is set, that folder `torch` is used, for example to cross-compile a project.
# Fails if the compiler's output cannot be linked with the PyTorch.
function(_backendkit_find_torch function)
  find_package(Python COMPONENTS Interpreter QUIET)
  if(NOT Python_Interpreter_FOUND)
    _backendkit_fail(${function}
                     "needs a Python interpreter.\nPass -DPython_EXECUTABLE=<path>.")
  endif()
  set(origin ${Python_EXECUTABLE})
  if(BACKENDKIT_TORCH)
    get_filename_component(folder ${BACKENDKIT_TORCH} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
    set(origin ${folder})
    if(NOT EXISTS ${folder}/version.py)
      string(CONCAT text "BACKENDKIT_TORCH must be the folder 'torch' of an unpacked wheel of PyTorch, "
                    "but there is no version.py in\n  ${folder}")
      _backendkit_fail(${function} "${text}")
    endif()
  else()
    _backendkit_torch_folder(${Python_EXECUTABLE} folder)
  endif()
  if(NOT folder)
    string(CONCAT text "found no PyTorch in ${Python_EXECUTABLE}.\nInstall it there:\n"
                  "  ${Python_EXECUTABLE} -m pip install torch")
    _backendkit_fail(${function} "${text}")
  endif()
  _backendkit_torch_version(${folder} version)
  if(NOT version)
    _backendkit_fail(${function} "found no version in ${folder}/version.py.")
  endif()
  if(version VERSION_LESS _BACKENDKIT_OLDEST_TORCH)
    string(CONCAT text "needs PyTorch ${_BACKENDKIT_OLDEST_TORCH} or newer for autoloading, "
                  "found ${version} in ${origin}.")
    _backendkit_fail(${function} "${text}")
  endif()
  _backendkit_check_platform(${function} ${folder} ${origin})
  _backendkit_torch_abi(${folder} abi)
  _backendkit_torch_standard(${folder} 20 standard)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/version.py)
  set(BACKENDKIT_PYTHON ${Python_EXECUTABLE} PARENT_SCOPE)
  set(BACKENDKIT_TORCH_DIR ${folder} PARENT_SCOPE)
  set(BACKENDKIT_TORCH_VERSION ${version} PARENT_SCOPE)
  set(BACKENDKIT_TORCH_CXX11_ABI "${abi}" PARENT_SCOPE)
  set(BACKENDKIT_TORCH_STANDARD ${standard} PARENT_SCOPE)
endfunction()

# _backendkit_warn_if_newer(<function> <newest>)
# Warns if the PyTorch is newer than the newest release that BackendKit was tested with.
function(_backendkit_warn_if_newer function newest)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor ${BACKENDKIT_TORCH_VERSION})
  if(minor VERSION_GREATER newest)
    string(CONCAT text "PyTorch ${BACKENDKIT_TORCH_VERSION} is newer than ${newest}, the newest "
                  "release that this BackendKit was tested with.\nThe glue may not compile with it, "
                  "or may not work completely.")
    message(WARNING "${function}(): ${text}")
  endif()
endfunction()
