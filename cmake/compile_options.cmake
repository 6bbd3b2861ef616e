# How every target of the project is compiled. Linked to as jouleprof_options.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O3, CMake's default for GCC and Clang, compiles longer and measures no faster.
string(REPLACE "-O3" "-O2" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

find_program(CCACHE ccache)
if(CCACHE)
  # Without the first word it keeps nothing that uses a precompiled header; the second lets two
  # checkouts share what is kept.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Of what is installed: modules that mostly wait are a third sooner compiled, and those that compute after a run
# a quarter; a report then takes 4 % longer.
set(JOULEPROF_OPTIONS_COLD -Og)
set(JOULEPROF_OPTIONS_WARM -O1)

add_library(jouleprof_options INTERFACE)
target_compile_features(jouleprof_options INTERFACE cxx_std_20)
# GCC looks for what it no longer needs once it holds 1 GB, not 256 MB: most files are sooner compiled,
# by up to a tenth.
target_compile_options(jouleprof_options INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=524288>")
# Warnings are for those who develop; looking for them takes one twentieth of the time to build.
if(JOULEPROF_TESTS OR JOULEPROF_WERROR)
  target_compile_options(jouleprof_options INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
    $<$<BOOL:${JOULEPROF_WERROR}>:-Werror>)
endif()
# GCC 12 warns falsely: of empty optionals, and of texts that are joined, of these without being asked to.
target_compile_options(jouleprof_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow;-Wno-restrict>)
# Symbols are hidden unless a file exports them: parts of this run inside other people's processes.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(JOULEPROF_SANITIZE)
  target_compile_options(jouleprof_options INTERFACE
    -fsanitize=${JOULEPROF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # Vendors' functions are declared by us: their pointer types have other names than theirs. The others
    # are checks of each pointer that is followed, which double the time to compile and run; the address
    # sanitizer sees where one leads.
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function,null,alignment,vptr,object-size,pointer-overflow>)
  target_link_options(jouleprof_options INTERFACE -fsanitize=${JOULEPROF_SANITIZE})
endif()
