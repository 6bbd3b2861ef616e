#include "analysis/job/machine_names.h"

#include <fmt/format.h>

#include <set>

namespace jouleprof::analysis {

std::map<std::string, std::string> distinct_names(
    const std::vector<std::pair<std::string, std::string>>& machines) {
  std::map<std::string, std::set<std::string>> boots;
  for (const auto& [name, boot] : machines) boots[name].insert(boot);
  std::map<std::string, std::string> names;
  for (const auto& [name, of_name] : boots) {
    if (of_name.size() < 2) continue;
    std::size_t digits = 8;
    const auto count = [&] {
      std::set<std::string> firsts;
      for (const auto& boot : of_name) firsts.insert(boot.substr(0, digits));
      return firsts.size();
    };
    while (count() < of_name.size()) ++digits;
    for (const auto& boot : of_name) {
      names[boot] = boot.empty() ? fmt::format("{} (no boot id)", name)
                                 : fmt::format("{} ({})", name, boot.substr(0, digits));
    }
  }
  return names;
}

}  // namespace jouleprof::analysis
