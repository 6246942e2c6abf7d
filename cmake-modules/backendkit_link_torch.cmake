# SPDX-License-Identifier: Apache-2.0
#[[.md:
## backendkit_link_torch

Compiles and links a target for the PyTorch of the active Python.

```
backendkit_link_torch(<target>)
```

PyTorch is found by its files: it is not imported, and no CUDA toolkit is needed. Adds, all of them
`PRIVATE`:

- PyTorch's headers, as system headers;
- `_GLIBCXX_USE_CXX11_ABI` as that PyTorch was built (0 for the default wheels up to 2.6);
- the C++ standard that its headers require, 20 or later;
- `libtorch_cpu` and `libc10`, without a path to them: a process that loads the library has already
  loaded PyTorch.

Fails if there is no Python, no PyTorch in it, or one that is older than the oldest
[supported release](compatibility.md).
#]]
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch.cmake)

function(backendkit_link_torch target)
  _backendkit_parse(arg "" "" "" 1)
  if(NOT TARGET ${target})
    _backendkit_fail(backendkit_link_torch "there is no target '${target}'.")
  endif()
  _backendkit_find_torch(backendkit_link_torch)
  set(include ${BACKENDKIT_TORCH_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${include}
                                                      ${include}/torch/csrc/api/include)
  target_compile_features(${target} PRIVATE cxx_std_${BACKENDKIT_TORCH_STANDARD})
  if(NOT BACKENDKIT_TORCH_CXX11_ABI STREQUAL "")
    target_compile_definitions(${target}
                               PRIVATE _GLIBCXX_USE_CXX11_ABI=${BACKENDKIT_TORCH_CXX11_ABI})
  endif()
  _backendkit_torch_libraries(${BACKENDKIT_TORCH_DIR} libraries)
  foreach(library IN LISTS libraries)
    if(NOT EXISTS ${library})
      _backendkit_fail(backendkit_link_torch "found no ${library}.")
    endif()
    target_link_libraries(${target} PRIVATE ${library})
  endforeach()
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endfunction()
