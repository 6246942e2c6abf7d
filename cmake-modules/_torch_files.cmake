# SPDX-License-Identifier: Apache-2.0
# Internal: reads facts from the files of a PyTorch. None of it is imported or run. The CMake package
# of a backend's wheel carries a copy, in which the names of the functions begin with the backend's.
include_guard(GLOBAL)

# The release, such as 2.13.0, of a folder `torch` or of an unpacked libtorch; empty without one.
function(_backendkit_torch_version folder variable)
  set(line "")
  if(EXISTS ${folder}/version.py)
    file(STRINGS ${folder}/version.py line REGEX "^__version__ *=")
  elseif(EXISTS ${folder}/build-version)
    file(STRINGS ${folder}/build-version line LIMIT_COUNT 1)
  endif()
  set(${variable} "" PARENT_SCOPE)
  if(line MATCHES "([0-9]+\\.[0-9]+(\\.[0-9]+)?)")
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

# The files to link for libtorch_cpu and libc10, whether they exist or not.
function(_backendkit_torch_libraries folder variable)
  set(prefix ${CMAKE_SHARED_LIBRARY_PREFIX})
  set(suffix ${CMAKE_SHARED_LIBRARY_SUFFIX})
  if(WIN32)
    set(prefix ${CMAKE_IMPORT_LIBRARY_PREFIX})
    set(suffix ${CMAKE_IMPORT_LIBRARY_SUFFIX})
  endif()
  set(${variable} ${folder}/lib/${prefix}torch_cpu${suffix} ${folder}/lib/${prefix}c10${suffix}
      PARENT_SCOPE)
endfunction()

# The folder `torch` that a Python would import; empty when there is none.
function(_backendkit_torch_folder python variable)
  file(READ ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/find_torch.py script)
  execute_process(COMMAND ${python} -c "${script}" OUTPUT_VARIABLE answer ERROR_QUIET)
  set(${variable} "" PARENT_SCOPE)
  if(answer MATCHES "torch is in ([^\n\r]+)")
    file(TO_CMAKE_PATH "${CMAKE_MATCH_1}" folder)
    set(${variable} ${folder} PARENT_SCOPE)
  endif()
endfunction()

# libstdc++ has two forms of std::string; the name of a symbol that takes one shows which.
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

# The C++ standard that its headers need, <least> or later: a PyTorch that needs more says so in its
# CMake package, older ones as a property and newer ones as a feature.
function(_backendkit_torch_standard folder least variable)
  set(standard ${least})
  set(config ${folder}/share/cmake/Torch/TorchConfig.cmake)
  if(EXISTS ${config})
    set(stated "(CXX_STANDARD +|cxx_std_)([0-9]+)")
    file(STRINGS ${config} lines REGEX "${stated}")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "${stated}" match "${line}")
      if(CMAKE_MATCH_2 GREATER standard AND CMAKE_MATCH_2 LESS 90)
        set(standard ${CMAKE_MATCH_2})
      endif()
    endforeach()
  endif()
  set(${variable} ${standard} PARENT_SCOPE)
endfunction()

# Whether PyTorch was built with torch.distributed, as its CMake package says.
function(_backendkit_torch_is_distributed folder variable)
  set(${variable} FALSE PARENT_SCOPE)
  set(targets ${folder}/share/cmake/Caffe2/Caffe2Targets.cmake)
  if(EXISTS ${targets})
    file(STRINGS ${targets} found REGEX "[\";]USE_DISTRIBUTED[\";]" LIMIT_COUNT 1)
    if(found)
      set(${variable} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()
