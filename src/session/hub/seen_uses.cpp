#include "session/hub/seen_uses.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

template <typename T>
std::optional<T> sum_of(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::optional<T>(*a + *b) : std::nullopt;
}

}  // namespace

std::optional<uid_t> user_of(pid_t pid, const std::filesystem::path& root) {
  const auto text = read_file(root / fmt::format("proc/{}/status", pid));
  if (!text) return std::nullopt;
  for (const auto line : split(*text, '\n')) {
    if (!line.starts_with("Uid:")) continue;
    const auto fields = split(line, '\t');  // real, effective, saved, of the file system
    if (fields.size() < 3) return std::nullopt;
    const auto uid = parse_integer(fields[2]);
    return uid ? std::optional(static_cast<uid_t>(*uid)) : std::nullopt;
  }
  return std::nullopt;
}

meters::GpuUses uses_seen_by(uid_t user, const meters::GpuUses& uses,
                             const std::function<std::optional<uid_t>(pid_t)>& user_of) {
  if (user == 0) return uses;
  meters::GpuUses out;
  std::map<std::pair<model::DomainId, HostTime>, model::GpuProcessUse> others;
  for (const auto& use : uses) {
    if (user_of(use.pid) == user) {
      out.push_back(use);
      continue;
    }
    const auto [at, is_first] = others.try_emplace({use.domain, use.at}, use);
    auto& sum = at->second;
    sum.pid = 0;
    if (is_first) continue;
    sum.compute_utilisation = sum_of(sum.compute_utilisation, use.compute_utilisation);
    sum.memory_bytes = sum_of(sum.memory_bytes, use.memory_bytes);
  }
  for (const auto& [key, use] : others) out.push_back(use);
  return out;
}

}  // namespace jouleprof::session
