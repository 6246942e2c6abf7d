# SPDX-License-Identifier: Apache-2.0
# Internal: reads and checks the arguments of the public functions.
include_guard(GLOBAL)

# _backendkit_fail(<function> <text>)
# Ends the configuration. Lines of <text> that are indented are shown as they are.
function(_backendkit_fail function text)
  message(FATAL_ERROR "${function}(): ${text}")
endfunction()

# _backendkit_parse(<prefix> <options> <one-value keywords> <list keywords> <first>)
# Reads the calling function's arguments, from number <first> on, into <prefix>_KEYWORD. Refuses
# leftovers, keywords without a value and misspelt keywords that a list swallowed.
macro(_backendkit_parse prefix options one_value multi_value first)
  cmake_parse_arguments(PARSE_ARGV ${first} ${prefix} "${options}" "${one_value}" "${multi_value}")
  set(_backendkit_keywords ${one_value} ${multi_value} ${options})
  _backendkit_judge(${CMAKE_CURRENT_FUNCTION} "${_backendkit_keywords}"
                    "${${prefix}_UNPARSED_ARGUMENTS}" "${${prefix}_KEYWORDS_MISSING_VALUES}")
  foreach(_backendkit_list ${multi_value})
    _backendkit_judge_list(${CMAKE_CURRENT_FUNCTION} "${_backendkit_keywords}" ${_backendkit_list}
                           "${${prefix}_${_backendkit_list}}")
  endforeach()
endmacro()

function(_backendkit_keywords_text keywords variable)
  list(JOIN keywords ", " text)
  set(${variable} "\nThe keywords are ${text}." PARENT_SCOPE)
  if(NOT keywords)
    set(${variable} "\nIt takes a target and nothing else." PARENT_SCOPE)
  endif()
endfunction()

function(_backendkit_judge function keywords leftovers missing)
  _backendkit_keywords_text("${keywords}" listed)
  foreach(word IN LISTS leftovers)
    _backendkit_fail(${function} "unknown argument '${word}'.${listed}")
  endforeach()
  foreach(word IN LISTS missing)
    _backendkit_fail(${function} "'${word}' needs a value.")
  endforeach()
endfunction()

function(_backendkit_judge_list function keywords list_keyword values)
  foreach(word IN LISTS values)
    if(word MATCHES "^[A-Z][A-Z_]+$" AND NOT TARGET ${word} AND NOT EXISTS
                                         ${CMAKE_CURRENT_SOURCE_DIR}/${word})
      _backendkit_keywords_text("${keywords}" listed)
      _backendkit_fail(${function} "unknown argument '${word}' among ${list_keyword}.${listed}")
    endif()
  endforeach()
endfunction()

# _backendkit_require_backend(<function> <target>)
# Fails if BACKEND is missing or was not created by add_torch_backend().
function(_backendkit_require_backend function target)
  if(target STREQUAL "")
    _backendkit_fail(${function} "'BACKEND' needs a value.")
  endif()
  if(NOT TARGET ${target})
    _backendkit_fail(${function} "there is no target '${target}'.")
  endif()
  get_target_property(device ${target} BACKENDKIT_DEVICE)
  if(NOT device)
    _backendkit_fail(${function} "'${target}' was not created by add_torch_backend().")
  endif()
endfunction()
