# Turns text files into one C source: cmake -DOUTPUT=file.c -DFILES="a;b" -P embed.cmake
#
# Every line of a file becomes a string literal. The result defines prelude_files[], ended by a row of zeros; see
# struct PreludeFile in src/check/check.h. With -DTEXT=name -DHEADER=a.h it is one text, `name`, of `name`_size bytes, as that header declares.
set(rows "")
set(body "")
set(index 0)
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" text) # which leaves out carriage returns
  string(LENGTH "${text}" size)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # no trigraphs
  string(REPLACE "\t" "\\t" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  string(APPEND body "static const char text_${index}[] =\n    \"${text}\";\n\n")
  # The compiler counts too: should a character get lost on the way, the size is not that of the text.
  string(APPEND body "_Static_assert(sizeof text_${index} == ${size} + 1, \"${name} was not embedded whole\");\n\n")
  string(APPEND rows "    {\"${name}\", text_${index}, ${size}},\n")
  math(EXPR index "${index} + 1")
endforeach()
if(TEXT)
  file(WRITE "${OUTPUT}" "/* Made by cmake/embed.cmake from ${FILES}. */
#include \"${HEADER}\"

${body}const char *const ${TEXT} = text_0;
const size_t ${TEXT}_size = sizeof text_0 - 1;
")
  return()
endif()
file(WRITE "${OUTPUT}" "/* Made by cmake/embed.cmake from prelude/. */
#include \"driver/driver.h\"

${body}const struct PreludeFile prelude_files[] = {
${rows}    {NULL, NULL, 0},
};
")
