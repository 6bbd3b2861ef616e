# Headers that nearly every file includes, compiled once for all targets: half of the time to build.
# A file still includes what it uses; these two only make that quick.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/empty.cpp CONTENT "")

set(JOULEPROF_STANDARD_HEADERS
  <algorithm> <array> <chrono> <cmath> <cstddef> <cstdint> <cstring> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map> <utility>
  <vector> <fmt/format.h> <tl/expected.hpp>)

# GCC takes no header that was compiled with other options.
set(targets jouleprof_precompiled)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  list(APPEND targets jouleprof_precompiled_COLD jouleprof_precompiled_WARM)
endif()
foreach(target IN LISTS targets)
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/precompiled/empty.cpp)
  target_link_libraries(${target} PRIVATE jouleprof_options jouleprof_fmt tl::expected Threads::Threads)
  target_precompile_headers(${target} PRIVATE ${JOULEPROF_STANDARD_HEADERS})
  if(target MATCHES "_([A-Z]+)$")
    target_compile_options(${target} PRIVATE ${JOULEPROF_OPTIONS_${CMAKE_MATCH_1}})
  endif()
endforeach()

# For programs, without a library's -fPIC.
if(JOULEPROF_TESTS)
  add_executable(jouleprof_precompiled_tests EXCLUDE_FROM_ALL
                 ${PROJECT_BINARY_DIR}/precompiled/empty.cpp)
  target_link_libraries(jouleprof_precompiled_tests PRIVATE jouleprof_options jouleprof_fmt
    tl::expected GTest::gtest GTest::gmock GTest::gtest_main Threads::Threads)
  target_precompile_headers(jouleprof_precompiled_tests PRIVATE
    ${JOULEPROF_STANDARD_HEADERS} <gtest/gtest.h> <gmock/gmock.h>)
  target_compile_options(jouleprof_precompiled_tests PRIVATE ${JOULEPROF_TEST_OPTIONS})
endif()
