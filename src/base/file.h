// Small files: reading whole texts and listing folders, with errors that name the path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof {

// The Error of a failed system call: `what` is what was tried ("cannot open /x"), `err` its errno.
Error system_error(std::string_view what, int err);

// The whole content. Works for /proc and /sys, whose sizes are not known in advance.
// Errors: not_found, permission_denied, unavailable; invalid_argument when longer than `limit`.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit = std::size_t{1} << 30);

// A text without its white space at both ends.
std::string_view trim(std::string_view text);

// The first line of a file, trimmed: what most /sys attributes are.
Result<std::string> read_attribute(const std::filesystem::path& path);

// A /sys attribute that holds one whole number. Errors: as read_file; corrupt when it is no number.
Result<long long> read_integer(const std::filesystem::path& path);

// Names (not paths) in a folder, sorted. Errors: as read_file.
Result<std::vector<std::string>> list_folder(const std::filesystem::path& path);

}  // namespace jouleprof
