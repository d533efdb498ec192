# What `cmake --install` and `cpack` take, and where it lies below the prefix:
#   bin/warpsmith                 leads to libexec/warpsmith/warpsmith
#   libexec/warpsmith/            all programs and modules; they find each other by their folder
#   libexec/warpsmith/torch/      those that need torch; a script of the same name, one folder up, starts each
#   share/warpsmith/              datasets, workflows, slurm and sites (site files of an installation)
#   share/doc/warpsmith/          the documents; man page and completions where the system looks for them
set(WARPSMITH_PROGRAMS ${CMAKE_INSTALL_LIBEXECDIR}/warpsmith)
# Libraries outside the system's folders are looked for where the build has them; torch's as with_torch.sh.in says.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# Not the tests: `programs` is what is installed.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# A program that is linked with torch, which need not lie where it did at the build.
function(warpsmith_install_with_torch name)
  install(TARGETS ${name} RUNTIME DESTINATION ${WARPSMITH_PROGRAMS}/torch)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" version "${WARPSMITH_TORCH_VERSION}")
  set(script ${PROJECT_BINARY_DIR}/installed/with_torch.sh)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/with_torch.sh.in ${script} @ONLY)
  install(PROGRAMS ${script} DESTINATION ${WARPSMITH_PROGRAMS} RENAME ${name})
endfunction()

# Text that the program itself prints: `install` asks it.
function(warpsmith_install_answer words folder file)
  set(answer ${PROJECT_BINARY_DIR}/installed/${file})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:warpsmith>\" ${words} OUTPUT_FILE \"${answer}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${answer} DESTINATION ${folder})
endfunction()

function(warpsmith_install_files)
  if(NOT TARGET warpsmith)
    return()
  endif()
  set(link ${PROJECT_BINARY_DIR}/installed/bin/warpsmith)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/installed/bin)
  file(RELATIVE_PATH target /${CMAKE_INSTALL_BINDIR} /${WARPSMITH_PROGRAMS}/warpsmith)
  file(CREATE_LINK ${target} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${CMAKE_INSTALL_BINDIR})
  warpsmith_install_answer(man ${CMAKE_INSTALL_MANDIR}/man1 warpsmith.1)
  warpsmith_install_answer("completions bash" ${CMAKE_INSTALL_DATADIR}/bash-completion/completions warpsmith)
  warpsmith_install_answer("completions zsh" ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions _warpsmith)
  warpsmith_install_answer("completions fish" ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d warpsmith.fish)
  set(share ${CMAKE_INSTALL_DATADIR}/warpsmith)
  install(DIRECTORY datasets workflows DESTINATION ${share} PATTERN "*.md" EXCLUDE)
  install(FILES slurm/warpsmith.sbatch slurm/site.schema.json DESTINATION ${share}/slurm)
  install(FILES slurm/sites/example.yaml DESTINATION ${share}/sites)
  # Documents at the same places as in the source, so that their links hold.
  set(doc ${CMAKE_INSTALL_DATADIR}/doc/warpsmith)
  file(GLOB_RECURSE documents RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS datasets/*.md slurm/*.md src/*.md workflows/*.md)
  list(APPEND documents README.md CHANGELOG.md results/README.md results/measurement.md results/report.png tests/bench/README.md
    tests/hacks/README.md)
  foreach(file IN LISTS documents)
    cmake_path(GET file PARENT_PATH folder)
    install(FILES ${file} DESTINATION ${doc}/${folder})
  endforeach()
  install(FILES LICENSE DESTINATION ${doc} RENAME copyright)
endfunction()

# One package: dpkg's where its tools are, and an archive.
set(CPACK_GENERATOR TGZ)
find_program(WARPSMITH_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(WARPSMITH_DPKG_SHLIBDEPS)
if(WARPSMITH_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_VENDOR "The Warpsmith authors")
if(NOT CPACK_PACKAGE_CONTACT)  # who packs it may say
  set(CPACK_PACKAGE_CONTACT "The Warpsmith authors <warpsmith@localhost>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "One YAML file describes an experiment. Warpsmith runs it on one machine or on a Slurm cluster, survives
kills, and keeps every measurement with its raw samples. Programs that need
torch find it by TORCH_ROOT; it is no part of this package.")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(WARPSMITH_TORCH_ROOT)  # torch is no package of Debian's: no dependency
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${WARPSMITH_TORCH_ROOT}/lib)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, bubblewrap, python3")
include(CPack)
