#include "apps/cli/options/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <string>

#include "base/text.h"

namespace jouleprof::cli {
namespace {

std::string refuse_sign(const std::string& text) {
  if (!text.starts_with('-')) return {};
  return fmt::format("'{}' is below 0; give a whole number from 0 on", text);
}

// CLI11's own message for a word that is no number names neither what is wanted nor what is wrong.
std::string refuse_word(const std::string& type, const std::string& text) {
  const bool is_count = type.starts_with("UINT");
  if (is_count || type.starts_with("INT")) {
    if (parse_integer(text)) return {};
    return fmt::format("'{}' is not a whole number", text);
  }
  if (!type.starts_with("FLOAT") || parse_number(text)) return {};
  return fmt::format("'{}' is not a number", text);
}

// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 40;  // no name is longer
  if (word.size() > kLongest) return {};
  std::string best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits >= fewest) continue;
    fewest = edits;
    best = candidate;
  }
  return best;
}

Result<Duration> parse_duration_or_seconds(const std::string& text) {
  return parse_duration(parse_number(text) ? text + "s" : text);
}

CLI::Validator one_of(std::vector<std::string> words) {
  return {[words](const std::string& text) {
            if (std::ranges::find(words, text) != words.end()) return std::string();
            const std::string close = nearest(text, words);
            return fmt::format("'{}' is none of {}{}", text, fmt::join(words, ", "),
                               close.empty() ? "" : fmt::format("; did you mean {}?", close));
          },
          ""};
}

CLI::Validator above_zero() {
  return {[](const std::string& text) {
            const auto number = parse_number(text);
            if (number && *number > 0) return std::string();
            return fmt::format("'{}' is not a number above 0", text);
          },
          ""};
}

CLI::Validator not_negative() {
  return {[](const std::string& text) {
            const auto number = parse_number(text);
            if (number && *number >= 0) return std::string();
            return fmt::format("'{}' is not a number from 0 on", text);
          },
          ""};
}

CLI::Validator within(double lowest, double highest) {
  return {[lowest, highest](const std::string& text) {
            const auto number = parse_number(text);
            if (number && *number >= lowest && *number <= highest) return std::string();
            return fmt::format("'{}' is not a number from {} to {}", text, lowest, highest);
          },
          ""};
}

// `std::regex` throws; its text is the user's.
Result<void> check_number_expression(std::string_view option, const std::string& expression,
                                     std::string_view example) {
  try {
    if (std::regex(expression).mark_count() == 1) return {};
  } catch (const std::regex_error&) {
  }
  return fail(Errc::kInvalidArgument,
              fmt::format("{} {}: give a regular expression with one group for the number, such as "
                          "'{}'",
                          option, expression, example));
}

void check_all_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    // CLI11 takes "-3" for a number near 2^64.
    const std::string type = option->get_type_name();
    option->check([type](const std::string& text) {
      if (text.empty()) return std::string("a value is missing: it is empty");
      const std::string sign = type.starts_with("UINT") ? refuse_sign(text) : std::string();
      return !sign.empty() ? sign : refuse_word(type, text);
    });
  }
}

}  // namespace jouleprof::cli
