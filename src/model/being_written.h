// A recording that was read while another program still wrote it.
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace jouleprof::model {

// Its warning, which its reader adds and no file has.
inline constexpr std::string_view kBeingWritten =
    "the recording is still being written; figures end with what it has so far";

// `warnings`: a recording's, or a profile's texts.
template <typename Warnings>
bool is_being_written(const Warnings& warnings) {
  return std::any_of(warnings.begin(), warnings.end(), [](const auto& warning) {
    if constexpr (std::is_convertible_v<decltype(warning), std::string_view>) {
      return std::string_view(warning) == kBeingWritten;
    } else {
      return warning.text == kBeingWritten;
    }
  });
}

}  // namespace jouleprof::model
