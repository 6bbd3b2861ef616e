#include "session/machine/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/new_file.h"

namespace jouleprof::session {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestState = std::size_t{256} << 20;
constexpr std::size_t kMostPatches = std::size_t{1} << 20;  // bytes, before the whole is written
constexpr std::size_t kGzipHeader = 10;

Result<std::string> member(const json& content) {
  auto out = gzip_text(content.dump() + "\n");
  if (out.empty()) return fail(Errc::kUnavailable, "there is no memory to compress the counters");
  return out;
}

}  // namespace

Result<json> StateFile::read(const std::filesystem::path& path) {
  const auto file = read_file(path, kLargestState);
  if (!file && file.error().code == Errc::kNotFound) return json();
  if (!file) return forward_error(file);
  const auto damaged = [&](std::string_view what) {
    return fail(Errc::kCorrupt, fmt::format("{} is damaged: {}", path.string(), what));
  };
  std::string_view rest = *file;
  try {
    if (rest.starts_with('{')) return json::parse(rest);
    const auto header = rest.substr(0, kGzipHeader);
    const auto whole = gunzip_member(rest, kLargestState);
    if (!whole) return damaged("its first state cannot be read");
    auto state = json::parse(*whole);
    while (!rest.empty()) {
      const auto patch = gunzip_member(rest, kLargestState);
      if (patch) {
        state.patch_inplace(json::parse(*patch));
      } else if (rest.find(header, 1) == std::string_view::npos) {
        break;  // the last write was cut off: its counters were not shown
      } else {
        return damaged("a part in the middle cannot be read");
      }
    }
    return state;
  } catch (const json::exception& e) {
    return damaged(e.what());
  }
}

Result<void> StateFile::save(json state) {
  const auto before = std::exchange(last_, nullptr);
  if (before && size_ - whole_ < std::max(kMostPatches, whole_)) {
    const auto patch = member(json::diff(*before, state));
    if (patch && append_to_file(path_, size_, *patch)) {
      size_ += patch->size();
      last_ = std::make_shared<const json>(std::move(state));
      return {};
    }
  }
  const auto whole = member(state);
  if (!whole) return forward_error(whole);
  if (auto saved = replace_file(path_, *whole); !saved) return saved;
  size_ = whole_ = whole->size();
  last_ = std::make_shared<const json>(std::move(state));
  return {};
}

}  // namespace jouleprof::session
