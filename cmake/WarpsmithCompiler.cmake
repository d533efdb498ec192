# Warnings, sanitizers and ccache, applied to every target of ours.
add_library(warpsmith_options INTERFACE)
target_compile_options(warpsmith_options INTERFACE -Wall -Wextra -Wconversion -Wshadow
  -Wno-missing-field-initializers)  # designated initialisers leave out what has a default
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(warpsmith_options INTERFACE -Wno-restrict)  # false alarms on std::string +, GCC bug 105651
endif()
if(WARPSMITH_WERROR)
  target_compile_options(warpsmith_options INTERFACE -Werror)
endif()
if(WARPSMITH_SANITIZE)
  target_compile_options(warpsmith_options INTERFACE -fsanitize=${WARPSMITH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(warpsmith_options INTERFACE -fsanitize=${WARPSMITH_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms in instrumented code: std::variant; copies of one-element arrays (GCC 13).
    target_compile_options(warpsmith_options INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
