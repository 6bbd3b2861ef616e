# What `make install` puts where: the tool, the headers, the library, a CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What a Python wheel carries, next to the package's Python files.
if(JOULEPROF_PYTHON)
  set(in_wheel COMPONENT wheel EXCLUDE_FROM_ALL)
  install(TARGETS jouleprof RUNTIME DESTINATION jouleprof/bin ${in_wheel})
  install(TARGETS jouleprof_inject LIBRARY DESTINATION jouleprof/lib ${in_wheel})
  install(TARGETS jouleprof_python LIBRARY DESTINATION jouleprof ${in_wheel})
  # A wheel holds no symbolic links, so the library is one file there.
  install(PROGRAMS $<TARGET_FILE:jouleprof_shared> DESTINATION jouleprof
          RENAME $<TARGET_SONAME_FILE_NAME:jouleprof_shared> ${in_wheel})
  install(DIRECTORY python/hook/ DESTINATION jouleprof/_hook ${in_wheel}
          FILES_MATCHING PATTERN "*.py")
  add_custom_target(wheel)
  add_dependencies(wheel jouleprof jouleprof_inject jouleprof_python jouleprof_shared)
endif()
if(SKBUILD)
  return()
endif()

install(TARGETS jouleprof RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The manual page and the completions, which the tool prints.
set(printed ${PROJECT_BINARY_DIR}/printed)
add_custom_command(OUTPUT ${printed}/jouleprof.1 ${printed}/jouleprof ${printed}/_jouleprof
                          ${printed}/jouleprof.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${printed}
  COMMAND jouleprof man > ${printed}/jouleprof.1
  COMMAND jouleprof completion bash > ${printed}/jouleprof
  COMMAND jouleprof completion zsh > ${printed}/_jouleprof
  COMMAND jouleprof completion fish > ${printed}/jouleprof.fish
  DEPENDS jouleprof VERBATIM)
add_custom_target(jouleprof_printed ALL DEPENDS ${printed}/jouleprof.1)
install(FILES ${printed}/jouleprof.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${printed}/jouleprof DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${printed}/_jouleprof DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${printed}/jouleprof.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# For traced programs; nothing links to it.
install(TARGETS jouleprof_inject LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY python/hook/ DESTINATION ${CMAKE_INSTALL_DATADIR}/jouleprof/python_hook
        FILES_MATCHING PATTERN "*.py")
install(TARGETS jouleprof_shared EXPORT jouleprof_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/jouleprof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/jouleprof)
install(EXPORT jouleprof_targets NAMESPACE jouleprof:: DESTINATION ${package_dir})
configure_package_config_file(cmake/jouleprof-config.cmake.in
                              ${PROJECT_BINARY_DIR}/jouleprof-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# From the folder of jouleprof.pc up to the prefix, so that an installed tree can be moved.
file(RELATIVE_PATH from_pkgconfig /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/jouleprof-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/jouleprof.pc @ONLY CONTENT
"prefix=\${pcfiledir}/${from_pkgconfig}
Name: jouleprof
Description: Energy of regions of a program, by device, with 95 % intervals
Version: @PROJECT_VERSION@
Cflags: -I\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -L\${prefix}/@CMAKE_INSTALL_LIBDIR@ -ljouleprof
")
install(FILES ${PROJECT_BINARY_DIR}/jouleprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/jouleprof-config.cmake
              ${PROJECT_BINARY_DIR}/jouleprof-config-version.cmake
        DESTINATION ${package_dir})
