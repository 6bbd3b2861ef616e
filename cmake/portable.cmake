# jouleprof_portable(TARGET): with JOULEPROF_PORTABLE the target runs with glibc 2.28 and newer, whatever
# the glibc it is built with. x86-64 only; elsewhere the option has no effect.
option(JOULEPROF_PORTABLE "Installed files run with glibc 2.28 and newer" OFF)
set(JOULEPROF_GLIBC_2_28 OFF)
if(JOULEPROF_PORTABLE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT JOULEPROF_SANITIZE)
  set(JOULEPROF_GLIBC_2_28 ON)
  add_library(jouleprof_glibc_2_28 OBJECT cmake/glibc_2_28.c)
  add_library(jouleprof_glibc_2_28_program OBJECT cmake/glibc_2_28.c)
  target_compile_definitions(jouleprof_glibc_2_28_program PRIVATE JOULEPROF_PROGRAM)
endif()

function(jouleprof_portable target)
  if(NOT JOULEPROF_GLIBC_2_28)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:jouleprof_glibc_2_28_program>)
  else()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:jouleprof_glibc_2_28>)
  endif()
  # Libraries of their own before glibc 2.34.
  target_link_options(${target} PRIVATE
    "SHELL:-Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:libm.so.6 -Wl,--pop-state")
endfunction()
