# jouleprof_module(NAME [ROOMS | FOLDERS folder...] [COLD | WARM] [SHARDS n] [DEPENDS target...])
#
# One folder, one static library `jouleprof_NAME` made of the folder's *.cpp (but main.cpp, which is a
# program's own), and one test program `NAME_test` made of its *_test.cpp (testdata/ next to them is
# found through JOULEPROF_TESTDATA).
# ROOMS: the folders below belong to it, too; FOLDERS: these do. COLD, WARM: it is compiled quickly, see
# compile_options.cmake. SHARDS: see jouleprof_test.
function(jouleprof_module name)
  cmake_parse_arguments(ARG "ROOMS;COLD;WARM" "SHARDS" "FOLDERS;DEPENDS" ${ARGN})
  set(glob GLOB)
  if(ARG_ROOMS)
    set(glob GLOB_RECURSE)
  endif()
  list(TRANSFORM ARG_FOLDERS APPEND "/*.cpp")
  file(${glob} sources CONFIGURE_DEPENDS *.cpp ${ARG_FOLDERS})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_(test|fuzz)|/main)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  if(sources)
    add_library(jouleprof_${name} STATIC ${sources})
    set(precompiled jouleprof_precompiled)
    foreach(kind COLD WARM)
      if(ARG_${kind} AND CMAKE_BUILD_TYPE STREQUAL Release)
        target_compile_options(jouleprof_${name} PRIVATE ${JOULEPROF_OPTIONS_${kind}})
        set(precompiled jouleprof_precompiled_${kind})
      endif()
    endforeach()
    target_precompile_headers(jouleprof_${name} REUSE_FROM ${precompiled})
    if(JOULEPROF_UNITY)
      jouleprof_unity(jouleprof_${name} ${sources})
    endif()
    set(scope PUBLIC)
  else()
    add_library(jouleprof_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(jouleprof_${name} ${scope} ${PROJECT_SOURCE_DIR}/src
                                                        ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(jouleprof_${name} ${scope} jouleprof_options ${ARG_DEPENDS})

  if(JOULEPROF_TESTS AND tests)
    jouleprof_test(${name}_test SOURCES ${tests} DEPENDS jouleprof_${name} SHARDS ${ARG_SHARDS})
  endif()
endfunction()

add_custom_target(unit_tests)  # the test programs, without what only e2e tests start
add_custom_target(fuzzers)

# jouleprof_test(NAME SOURCES file... [DEPENDS target...] [SHARDS n]): a GoogleTest program. ctest runs
# it as n processes side by side, each with its share of the tests: one process for each test spends
# more time on starting than on testing.
function(jouleprof_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(JOULEPROF_UNITY_TESTS)
    jouleprof_unity(${name} ${ARG_SOURCES})
  endif()
  add_dependencies(unit_tests ${name})
  target_precompile_headers(${name} REUSE_FROM jouleprof_precompiled_tests)
  target_link_libraries(${name} PRIVATE jouleprof_options ${ARG_DEPENDS} GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE
    JOULEPROF_TESTDATA="${CMAKE_CURRENT_SOURCE_DIR}/testdata"
    JOULEPROF_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    JOULEPROF_BINARY_DIR="${PROJECT_BINARY_DIR}")
  # Test code runs once, so that optimising it costs more than it saves.
  target_compile_options(${name} PRIVATE ${JOULEPROF_TEST_OPTIONS})
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      string(APPEND test _${shard})
    endif()
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${test} PROPERTIES TIMEOUT 600 ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# jouleprof_fuzzer(NAME FILE [DEPENDS target...]): a libFuzzer program.
function(jouleprof_fuzzer name file)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  if(JOULEPROF_FUZZ)
    add_dependencies(fuzzers ${name})
    add_executable(${name} ${file})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE jouleprof_options ${ARG_DEPENDS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
