# Third-party libraries, as Debian 12 and Ubuntu 24.04 package them (tools/setup installs them).
# What ends up in an installed file is linked statically or is header-only.
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)       # Result<T>: std::expected's spelling under C++20
find_package(fmt REQUIRED)               # formatting that ignores the locale
find_package(nlohmann_json REQUIRED)     # small JSON documents
find_package(Eigen3 REQUIRED NO_MODULE)  # linear algebra of the estimators
find_package(SQLiteCpp REQUIRED)         # the recording file
find_package(CLI11 REQUIRED)             # the command line
find_package(Boost 1.74 REQUIRED)        # Beast and Asio: the HTTP server; headers only

# In every file's own code fmt takes half of the time to build. src/base/fmt.cpp knows what fmt 9
# leaves out where its code is elsewhere.
add_library(jouleprof_fmt INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  get_target_property(fmt_headers fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(jouleprof_fmt SYSTEM INTERFACE ${fmt_headers})
else()
  target_link_libraries(jouleprof_fmt INTERFACE fmt::fmt-header-only)
endif()

find_library(SQLITE3_STATIC libsqlite3.a REQUIRED)
# SQLiteCpp's package asks for the shared SQLite.
set_target_properties(SQLiteCpp PROPERTIES INTERFACE_LINK_LIBRARIES "")
add_library(jouleprof_sqlite INTERFACE)
target_link_libraries(jouleprof_sqlite INTERFACE SQLiteCpp ${SQLITE3_STATIC} Threads::Threads
                                                 ${CMAKE_DL_LIBS} m)

find_library(ZLIB_STATIC libz.a REQUIRED)  # compressed traces and tables
find_path(ZLIB_HEADERS zlib.h REQUIRED)
add_library(jouleprof_zlib INTERFACE)
target_include_directories(jouleprof_zlib SYSTEM INTERFACE ${ZLIB_HEADERS})
target_link_libraries(jouleprof_zlib INTERFACE ${ZLIB_STATIC})
# TLS, configuration and passwords of the HTTP server.
find_library(SSL_STATIC libssl.a REQUIRED)
find_library(CRYPTO_STATIC libcrypto.a REQUIRED)
find_library(YAML_CPP_STATIC libyaml-cpp.a REQUIRED)
find_library(CRYPT_STATIC libcrypt.a REQUIRED)  # libxcrypt, for bcrypt
find_path(YAML_CPP_HEADERS yaml-cpp/yaml.h REQUIRED)
add_library(jouleprof_web INTERFACE)
target_include_directories(jouleprof_web SYSTEM INTERFACE ${YAML_CPP_HEADERS})
target_link_libraries(jouleprof_web INTERFACE ${SSL_STATIC} ${CRYPTO_STATIC} ${YAML_CPP_STATIC}
  ${CRYPT_STATIC} Threads::Threads ${CMAKE_DL_LIBS})

find_path(PROTOZERO_HEADERS protozero/pbf_writer.hpp REQUIRED)  # pprof's profile.proto

if(JOULEPROF_TESTS)
  find_package(GTest REQUIRED)
endif()
if(JOULEPROF_BENCH)
  find_package(benchmark REQUIRED)
endif()
