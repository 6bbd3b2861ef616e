// Which sanitizer a test is built with: GCC defines macros, Clang features.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define JOULEPROF_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JOULEPROF_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define JOULEPROF_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOULEPROF_THREAD_SANITIZER 1
#endif
#endif
