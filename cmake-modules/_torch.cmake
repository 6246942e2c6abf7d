# SPDX-License-Identifier: Apache-2.0
# Internal: the PyTorch of the active Python, read from its files. It is neither imported nor looked
# for with find_package(Torch), which fails for a CUDA build on a machine without CUDA.
include_guard(GLOBAL)

set(_BACKENDKIT_OLDEST_TORCH 2.5)

# _backendkit_find_torch(<function>)
# Sets, in the caller:
#   BACKENDKIT_PYTHON          the interpreter
#   BACKENDKIT_TORCH_DIR       its folder `torch`
#   BACKENDKIT_TORCH_VERSION   2.13.0
#   BACKENDKIT_TORCH_CXX11_ABI 0 or 1, for _GLIBCXX_USE_CXX11_ABI; empty where there is no such thing
#   BACKENDKIT_TORCH_STANDARD  the C++ standard that its headers want, 20 or later
function(_backendkit_find_torch function)
  find_package(Python COMPONENTS Interpreter QUIET)
  if(NOT Python_Interpreter_FOUND)
    _backendkit_fail(${function}
                     "needs a Python interpreter.\nPass -DPython_EXECUTABLE=<path>.")
  endif()
  _backendkit_torch_folder(${Python_EXECUTABLE} folder)
  if(NOT folder)
    string(CONCAT text "found no PyTorch in ${Python_EXECUTABLE}.\nInstall it there:\n"
                  "  ${Python_EXECUTABLE} -m pip install torch")
    _backendkit_fail(${function} "${text}")
  endif()
  file(STRINGS ${folder}/version.py line REGEX "^__version__ *=")
  if(NOT line MATCHES "([0-9]+\\.[0-9]+(\\.[0-9]+)?)")
    _backendkit_fail(${function} "found no version in ${folder}/version.py.")
  endif()
  set(version ${CMAKE_MATCH_1})
  if(version VERSION_LESS _BACKENDKIT_OLDEST_TORCH)
    string(CONCAT text "needs PyTorch ${_BACKENDKIT_OLDEST_TORCH} or newer for autoloading, "
                  "found ${version} in ${Python_EXECUTABLE}.")
    _backendkit_fail(${function} "${text}")
  endif()
  _backendkit_torch_abi(${folder} abi)
  _backendkit_torch_standard(${folder} standard)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/version.py)
  set(BACKENDKIT_PYTHON ${Python_EXECUTABLE} PARENT_SCOPE)
  set(BACKENDKIT_TORCH_DIR ${folder} PARENT_SCOPE)
  set(BACKENDKIT_TORCH_VERSION ${version} PARENT_SCOPE)
  set(BACKENDKIT_TORCH_CXX11_ABI "${abi}" PARENT_SCOPE)
  set(BACKENDKIT_TORCH_STANDARD ${standard} PARENT_SCOPE)
endfunction()

# _backendkit_warn_if_newer(<function> <newest>)
# Warns of a PyTorch that is newer than the newest release BackendKit was tested with.
function(_backendkit_warn_if_newer function newest)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor ${BACKENDKIT_TORCH_VERSION})
  if(minor VERSION_GREATER newest)
    string(CONCAT text "PyTorch ${BACKENDKIT_TORCH_VERSION} is newer than ${newest}, the newest "
                  "release that this BackendKit was tested with.\nThe glue may not compile with it, "
                  "or not do all that it should.")
    message(WARNING "${function}(): ${text}")
  endif()
endfunction()

# The folder `torch` that a Python would import; empty when there is none. An empty entry of
# sys.path is the working folder, where another folder may be called torch.
function(_backendkit_torch_folder python variable)
  string(CONCAT script "import sys\n" "sys.path[:] = [p for p in sys.path if p]\n"
                "import importlib.util, os\n" "spec = importlib.util.find_spec('torch')\n"
                "if spec is not None and spec.origin:\n"
                "    print('torch is in ' + os.path.dirname(spec.origin))\n")
  execute_process(COMMAND ${python} -c "${script}" OUTPUT_VARIABLE answer ERROR_QUIET)
  set(${variable} "" PARENT_SCOPE)
  if(answer MATCHES "torch is in ([^\n\r]+)")
    file(TO_CMAKE_PATH "${CMAKE_MATCH_1}" folder)
    set(${variable} ${folder} PARENT_SCOPE)
  endif()
endfunction()

# libstdc++ has two forms of std::string, which a symbol that takes one tells apart in its name.
function(_backendkit_torch_abi folder variable)
  set(${variable} "" PARENT_SCOPE)
  set(library ${folder}/lib/libc10.so)
  if(NOT EXISTS ${library})
    return()
  endif()
  set(constructor "_ZN3c105ErrorC1ENS_14SourceLocationE") # c10::Error(SourceLocation, std::string)
  file(STRINGS ${library} new REGEX "^${constructor}NSt7__cxx11" LIMIT_COUNT 1)
  file(STRINGS ${library} old REGEX "^${constructor}Ss" LIMIT_COUNT 1)
  if(new)
    set(${variable} 1 PARENT_SCOPE)
  elseif(old)
    set(${variable} 0 PARENT_SCOPE)
  endif()
endfunction()

# BackendKit's own headers are C++20; a PyTorch that wants more says so in its CMake package.
function(_backendkit_torch_standard folder variable)
  set(standard 20)
  set(config ${folder}/share/cmake/Torch/TorchConfig.cmake)
  if(EXISTS ${config})
    file(STRINGS ${config} lines REGEX "CXX_STANDARD +[0-9]+")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "[0-9]+" wanted "${line}")
      if(wanted GREATER standard AND wanted LESS 90)
        set(standard ${wanted})
      endif()
    endforeach()
  endif()
  set(${variable} ${standard} PARENT_SCOPE)
endfunction()
