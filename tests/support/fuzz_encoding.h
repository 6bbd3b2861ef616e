// What fuzzers of messages check: that a decoded message encodes to text that gives it again.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jouleprof {

// `encode` is found in the message's namespace.
template <typename Message>
void check_encoding(const Message& message, Result<Message> (*decode)(std::string_view)) {
  const std::string text = encode(message);
  const auto again = decode(text);
  if (!again || encode(*again) != text) std::abort();
}

}  // namespace jouleprof
