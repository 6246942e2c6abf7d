# SPDX-License-Identifier: Apache-2.0
# backendkit_embed_templates(<target> <folder> [<path>=<file>...])
#   Adds every file below <folder> to <target> as data, found by `find_template` of base/templates.h under
#   its path below <folder>, and each <file>, which other parts of BackendKit use too, under <path>.
#   Made again when a template is added, removed or changed.
# With -P: writes OUTPUT from the files below FOLDER and from SHARED, which has `|` between its entries.

if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE names LIST_DIRECTORIES OFF RELATIVE ${FOLDER} ${FOLDER}/*)
  list(FILTER names EXCLUDE REGEX "__pycache__|\\.swp$|~$")
  string(REPLACE "|" ";" shared "${SHARED}")
  foreach(entry IN LISTS shared)
    string(REGEX MATCH "^([^=]+)=(.+)$" entry "${entry}")
    list(APPEND names ${CMAKE_MATCH_1})
    set(file_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endforeach()
  list(SORT names)
  set(text "// Made by generator/EmbedTemplates.cmake from templates/.\n#include \"base/templates.h\"\n\n")
  string(APPEND text "namespace backendgen {\n\nusing namespace std::string_view_literals;\n\nstd::span<const TemplateFile> templates() {\n")
  string(APPEND text "  static constexpr TemplateFile kAll[] = {\n")
  # "..."sv knows its length. Counting the characters of all texts is too much for clang's constexpr.
  foreach(name IN LISTS names)
    set(file ${FOLDER}/${name})
    if(DEFINED file_${name})
      set(file ${file_${name}})
    endif()
    file(READ ${file} content)
    string(APPEND text "      {\"${name}\", R\"_bk_(${content})_bk_\"sv},\n")
  endforeach()
  string(APPEND text "  };\n  return kAll;\n}\n\n}  // namespace backendgen\n")
  file(WRITE "${OUTPUT}" "${text}")
  return()
endif()

set(BACKENDKIT_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(backendkit_embed_templates target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS LIST_DIRECTORIES OFF ${folder}/*)
  foreach(entry IN LISTS ARGN)
    string(REGEX REPLACE "^[^=]+=" "" file ${entry})
    list(APPEND files ${file})
  endforeach()
  list(JOIN ARGN "|" shared)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/templates.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DSHARED=${shared} -DOUTPUT=${output} -P
            ${BACKENDKIT_EMBED_SCRIPT}
    DEPENDS ${files} ${BACKENDKIT_EMBED_SCRIPT}
    COMMENT "Embedding templates"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
