#include "apps/cli/options/checks.h"

#include <fmt/format.h>

#include <regex>
#include <string>

#include "base/text.h"

namespace jouleprof::cli {
namespace {

std::string refuse_sign(const std::string& text) {
  if (!text.starts_with('-')) return {};
  return fmt::format("'{}' is below 0; give a whole number from 0 on", text);
}

}  // namespace

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
    const bool is_count = option->get_type_name().starts_with("UINT");
    option->check([is_count](const std::string& text) {
      if (text.empty()) return std::string("a value is missing: it is empty");
      return is_count ? refuse_sign(text) : std::string();
    });
  }
}

}  // namespace jouleprof::cli
