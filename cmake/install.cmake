# What `make install` puts where: the tool, the headers, the library, a CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(SKBUILD)  # a Python wheel carries the tool, and what src/apps/python installs
  install(TARGETS jouleprof RUNTIME DESTINATION jouleprof/bin)
  install(TARGETS jouleprof_inject LIBRARY DESTINATION jouleprof/lib)
  install(DIRECTORY python/hook/ DESTINATION jouleprof/_hook FILES_MATCHING PATTERN "*.py")
  return()
endif()

install(TARGETS jouleprof RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
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
write_basic_package_version_file(${PROJECT_BINARY_DIR}/jouleprof-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/jouleprof-config.cmake
              ${PROJECT_BINARY_DIR}/jouleprof-config-version.cmake
        DESTINATION ${package_dir})
