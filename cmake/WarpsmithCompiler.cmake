# Warnings, sanitizers and ccache, applied to every target of ours. What runs foreign code in a sandbox takes the warnings
# alone (PLAIN): sanitizers want an address space, system calls and signals that are forbidden there.
add_library(warpsmith_warnings INTERFACE)
add_library(warpsmith_options INTERFACE)
target_link_libraries(warpsmith_options INTERFACE warpsmith_warnings)
target_compile_options(warpsmith_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow
  -Wno-missing-field-initializers)  # designated initialisers leave out what has a default
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(warpsmith_warnings INTERFACE -Wno-restrict)  # false alarms on std::string +, GCC bug 105651
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(warpsmith_warnings INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)  # on copies of short vectors, GCC bug 107852
endif()
if(WARPSMITH_WERROR)
  target_compile_options(warpsmith_warnings INTERFACE -Werror)
endif()
if(WARPSMITH_SANITIZE)
  target_compile_options(warpsmith_options INTERFACE -fsanitize=${WARPSMITH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(warpsmith_options INTERFACE -fsanitize=${WARPSMITH_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(warpsmith_options INTERFACE -Wno-maybe-uninitialized)  # false alarms in instrumented std::variant
  endif()
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
