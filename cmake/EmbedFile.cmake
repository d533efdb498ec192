# warpsmith_embed(TARGET SYMBOL FILE): `extern const char SYMBOL[]; extern const unsigned long SYMBOL_size;` with the bytes of FILE
# (and a NUL behind them). Run as a script (-DIN= -DOUT= -DSYMBOL=) it writes the source file.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${IN} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," values "${hex}")
  file(WRITE ${OUT} "extern const char ${SYMBOL}[];\nextern const unsigned long ${SYMBOL}_size;\n"
    "const char ${SYMBOL}[] = {${values}0};\nconst unsigned long ${SYMBOL}_size = ${bytes};\n")
  return()
endif()
set(WARPSMITH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(warpsmith_embed target symbol file)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cc)
  add_custom_command(OUTPUT ${source} COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${source} -DSYMBOL=${symbol} -P ${WARPSMITH_EMBED_SCRIPT}
    DEPENDS ${file} ${WARPSMITH_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
