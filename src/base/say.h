// Talk on stderr: best effort. A stderr that is closed, full or hung up never stops anything.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace jouleprof {

// Writes what can be written. Raises no SIGPIPE, throws nothing.
void say(std::string_view text) noexcept;

template <typename First, typename... Rest>
void say(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) noexcept {
  try {
    say(std::string_view(
        fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)));
  } catch (...) {  // no memory for a message
    say("jouleprof: out of memory\n");
  }
}

}  // namespace jouleprof
