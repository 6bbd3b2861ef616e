#include "apps/nvml_sim/core/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::nvml_sim {
namespace {

// The fields of /proc/PID/stat after the name, which may itself hold blanks and parentheses.
std::optional<pid_t> parent_of(const std::filesystem::path& process) {
  const auto stat = read_attribute(process / "stat");
  if (!stat) return std::nullopt;
  const auto close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = split_blanks(std::string_view(*stat).substr(close + 1));
  const auto parent = fields.size() > 1 ? parse_integer(fields[1]) : std::nullopt;
  if (!parent || fields[0] == "Z") return std::nullopt;
  return static_cast<pid_t>(*parent);
}

bool has_environment(const std::filesystem::path& process, std::string_view wanted) {
  const auto environment = read_file(process / "environ");
  if (!environment) return false;
  const auto entries = split(*environment, '\0');
  return std::any_of(entries.begin(), entries.end(), [wanted](std::string_view entry) {
    return entry == wanted || (wanted.find('=') == std::string_view::npos &&
                               entry.substr(0, entry.find('=')) == wanted);
  });
}

}  // namespace

std::vector<pid_t> tree_members(const TreeTarget& target, const std::filesystem::path& proc) {
  std::map<pid_t, pid_t> parents;
  if (const auto names = list_folder(proc)) {
    for (const auto& name : *names) {
      const auto pid = parse_integer(name);
      if (!pid) continue;
      if (const auto parent = parent_of(proc / name)) {
        parents[static_cast<pid_t>(*pid)] = *parent;
      }
    }
  }
  const auto is_root = [&](pid_t pid) {
    if (target.pid != 0) return pid == target.pid;
    if (target.environment.empty()) return pid == getpid();
    return has_environment(proc / std::to_string(pid), target.environment);
  };
  std::map<pid_t, bool> inside;
  std::vector<pid_t> members;
  for (const auto& [pid, parent] : parents) {
    // Up to a root, or to a process already decided.
    std::vector<pid_t> path;
    bool in = false;
    for (pid_t p = pid; parents.contains(p) && path.size() <= parents.size(); p = parents[p]) {
      if (const auto known = inside.find(p); known != inside.end()) {
        in = known->second;
        break;
      }
      path.push_back(p);
      if (is_root(p)) {
        in = true;
        break;
      }
    }
    for (const pid_t p : path) inside[p] = in;
    if (in) members.push_back(pid);
  }
  return members;
}

}  // namespace jouleprof::nvml_sim
