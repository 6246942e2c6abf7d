# SPDX-License-Identifier: Apache-2.0
# Internal: checks that the compiler's output can be linked with the PyTorch that was found. The
# linker would notice only after minutes, and report a missing symbol or "skipping incompatible".
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)

# _backendkit_check_platform(<function> <folder> <origin>)
# Fails if the compiler builds for another machine, C++ library or C library than the PyTorch in
# <folder>, which comes from <origin>. Ignores what it cannot read, such as files that are not ELF.
function(_backendkit_check_platform function folder origin)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  get_property(checked GLOBAL PROPERTY BACKENDKIT_CHECKED_TORCH)
  set(library ${folder}/lib/libtorch_cpu.so)
  if(NOT CXX IN_LIST languages OR library IN_LIST checked OR NOT EXISTS ${library})
    return()
  endif()
  _backendkit_elf_machine(${library} theirs)
  _backendkit_compile_probe(machine "int backendkit_probe;" probe)
  _backendkit_elf_machine("${probe}" ours)
  if(theirs AND ours AND NOT theirs STREQUAL ours)
    string(CONCAT text "the compiler builds for ${ours}, but the PyTorch in ${origin} is for "
                  "${theirs}.\n  ${CMAKE_CXX_COMPILER}\n  ${library}\nBuild for ${theirs}, or name "
                  "the folder of a PyTorch for ${ours}: -DBACKENDKIT_TORCH=<path>/torch.")
    _backendkit_fail(${function} "${text}")
  endif()
  _backendkit_libraries_of_torch(${folder} theirs)
  _backendkit_libraries_of_compiler(ours)
  foreach(pair "libc++|libstdc++" "libstdc++|libc++" "musl|glibc" "glibc|musl")
    string(REGEX MATCH "^(.+)\\|(.+)$" pair "${pair}")
    if(CMAKE_MATCH_1 IN_LIST ours AND CMAKE_MATCH_2 IN_LIST theirs)
      string(CONCAT text "the compiler uses ${CMAKE_MATCH_1}, but the PyTorch in ${origin} was built "
                    "with ${CMAKE_MATCH_2}.\n  ${CMAKE_CXX_COMPILER}\n  ${library}\n"
                    "Build with ${CMAKE_MATCH_2}.")
      _backendkit_fail(${function} "${text}")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY BACKENDKIT_CHECKED_TORCH ${library})
endfunction()

# What the first ELF file in <file>, itself or in an archive, was compiled for; empty if none is there.
function(_backendkit_elf_machine file variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT EXISTS "${file}")
    return()
  endif()
  file(READ ${file} bytes LIMIT 4096 HEX)
  string(FIND "${bytes}" 7f454c46 start)
  if(start LESS 0)
    return()
  endif()
  string(SUBSTRING "${bytes}" ${start} 40 head)
  if(NOT head MATCHES "^7f454c460([12])0([12]).*(..)(..)$")
    return()
  endif()
  set(class ${CMAKE_MATCH_1})
  set(order ${CMAKE_MATCH_2})
  if(order EQUAL 1)
    math(EXPR number "0x${CMAKE_MATCH_4}${CMAKE_MATCH_3}")
  else()
    math(EXPR number "0x${CMAKE_MATCH_3}${CMAKE_MATCH_4}")
  endif()
  # The ELF specification's numbers of the machines that PyTorch is built for, and of their relatives.
  set(names 3=i386 21=ppc64 22=s390x 40=arm 62=x86_64 183=aarch64 243=riscv 258=loongarch)
  list(FILTER names INCLUDE REGEX "^${number}=")
  string(REGEX REPLACE "^.*=" "" name "${names}")
  if(NOT name)
    set(name "ELF machine ${number}")
  endif()
  if(class EQUAL 1 AND NOT name MATCHES "^(i386|arm)$")
    string(APPEND name " with 32-bit pointers")
  endif()
  if(order EQUAL 2 AND NOT name STREQUAL "s390x")
    string(APPEND name ", big-endian")
  endif()
  set(${variable} "${name}" PARENT_SCOPE)
endfunction()

# Compiles a source with the flags of this folder and sets <variable> to an archive of the object;
# empty if it does not compile.
function(_backendkit_compile_probe name source variable)
  set(folder ${CMAKE_BINARY_DIR}/CMakeFiles/backendkit-probe)
  set(archive ${folder}/${name}.a)
  get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)
  list(FILTER options INCLUDE REGEX "^--?(m|stdlib|target|sysroot)")
  string(CONCAT key "${CMAKE_CXX_COMPILER}\n${CMAKE_CXX_FLAGS}\n${CMAKE_TOOLCHAIN_FILE}\n"
                "${options}\n${source}")
  set(record "")
  if(EXISTS ${archive}.key AND EXISTS ${archive})
    file(READ ${archive}.key record)
  endif()
  if(NOT record STREQUAL key)
    file(WRITE ${folder}/${name}.cpp "${source}\n")
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # nothing is run or linked
    try_compile(compiled ${folder}/${name} ${folder}/${name}.cpp COMPILE_DEFINITIONS ${options}
                COPY_FILE ${archive})
    set(made ${compiled})
    unset(compiled CACHE)
    if(NOT made)
      file(REMOVE ${archive})
      set(${variable} "" PARENT_SCOPE)
      return()
    endif()
    file(WRITE ${archive}.key "${key}")
  endif()
  set(${variable} ${archive} PARENT_SCOPE)
endfunction()

# The C++ and C libraries that libc10, the smallest library of PyTorch, needs.
function(_backendkit_libraries_of_torch folder variable)
  set(found)
  if(EXISTS ${folder}/lib/libc10.so)
    set(names "^(libstdc\\+\\+\\.so\\.6|libc\\+\\+\\.so\\.1|libc\\.so\\.6|libc\\.musl-.+\\.so\\.1)$")
    file(STRINGS ${folder}/lib/libc10.so found REGEX "${names}")
    list(TRANSFORM found REPLACE "^libc\\.musl.*" musl)
    list(TRANSFORM found REPLACE "^libc\\.so.*" glibc)
    list(TRANSFORM found REPLACE "\\.so.*" "")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# The C++ and C libraries whose headers the compiler finds.
function(_backendkit_libraries_of_compiler variable)
  string(CONCAT source "#include <cstddef>\n#include <climits>\n" "extern const char backendkit_probe[];\n"
                "const char backendkit_probe[] =\n"
                "#if defined(_LIBCPP_VERSION)\n\"backendkit:libc++\\n\"\n"
                "#elif defined(__GLIBCXX__)\n\"backendkit:libstdc++\\n\"\n#endif\n"
                "#if defined(__GLIBC__)\n\"backendkit:glibc\\n\"\n"
                "#elif defined(__linux__)\n\"backendkit:musl\\n\"\n#endif\n\"\";")
  _backendkit_compile_probe(libraries "${source}" probe)
  set(found)
  if(probe)
    file(STRINGS ${probe} found REGEX "^backendkit:")
    list(TRANSFORM found REPLACE "^backendkit:" "")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
