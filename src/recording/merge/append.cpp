#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/new_file.h"
#include "recording/claim.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "recording/sqlite_file.h"
#include "recording/sweep_file.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

std::string part_name(const fs::path& file, std::size_t number) {
  return fmt::format("{}-{:04}{}", file.stem().string(), number, file.extension().string());
}

// The names of the parts that `file` has; of a recording, the one that it will get.
Result<std::vector<std::string>> names_in(const fs::path& file) {
  if (!is_merged_file(file)) return std::vector{part_name(file, 1)};
  const auto parts = merged_parts(file);
  if (!parts) return forward_error(parts);
  std::vector<std::string> names;
  for (const auto& part : *parts) names.push_back(part.name);
  return names;
}

Result<Claim> claim_of(const fs::path& file) {
  auto claim = Claim::take(file, true);
  if (claim) return claim;
  return fail(Errc::kUnavailable,
              fmt::format("cannot append to {}: {}", file.string(), claim.error().message));
}

}  // namespace

Result<void> check_appendable(const fs::path& file) {
  if (is_sweep_file(file)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is a sweep, to which no recording can be appended", file.string()));
  }
  if (auto claim = claim_of(file); !claim) return forward_error(claim);
  if (is_merged_file(file)) return {};
  auto recording = read_recording(file);
  if (!recording) return forward_error(recording);
  return {};
}

Result<std::size_t> append_recording(const fs::path& recording, const fs::path& file) {
  const auto claim = claim_of(file);
  if (!claim) return forward_error(claim);
  const auto names = names_in(file);
  if (!names) return forward_error(names);
  const auto is_taken = [&](const std::string& name) {
    return std::find(names->begin(), names->end(), name) != names->end();
  };
  std::size_t number = names->size() + 1;
  while (is_taken(part_name(file, number))) ++number;
  const std::string name = part_name(file, number);

  auto fresh = NewFile::next_to(claim->path());
  if (!fresh) return forward_error(fresh);
  const auto written =
      write_merged({{file, part_name(file, 1), true}, {recording, name}}, fresh->path());
  remove_side_files(fresh->path());
  if (!written) return forward_error(written);
  remove_side_files(claim->path());
  if (auto placed = fresh->take_place(); !placed) return forward_error(placed);
  const auto now = names_in(file);
  if (!now) return forward_error(now);
  return static_cast<std::size_t>(std::find(now->begin(), now->end(), name) - now->begin()) + 1;
}

}  // namespace jouleprof::recording
