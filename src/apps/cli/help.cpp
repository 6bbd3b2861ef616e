#include "apps/cli/help.h"

#include <string>

namespace jouleprof::cli {

std::string_view help_block(std::string_view title, std::string_view page) {
  constexpr std::string_view kOpen = "```text\n";
  const auto heading = page.find("\n## " + std::string(title) + "\n");
  if (heading == std::string_view::npos) return {};
  const auto next_heading = page.find("\n## ", heading + 1);
  const auto open = page.find(kOpen, heading);
  if (open >= next_heading) return {};
  const auto begin = open + kOpen.size();
  const auto end = page.find("```", begin);
  return end < next_heading ? page.substr(begin, end - begin) : std::string_view{};
}

}  // namespace jouleprof::cli
