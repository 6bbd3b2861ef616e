// Texts made from the table of options.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jouleprof::cli {

// The tool's own, and that of a verb with its common options or with all; empty for an unknown
// verb. Lines have at most `width` columns, but for usages and examples; of 80, there are at most
// 25 without `all`.
std::string help_of_tool();
std::string help_of_completion();
std::string help_of_verb(std::string_view verb, bool all, std::size_t width);

std::string man_page(std::string_view version);

// For bash, zsh or fish; absent for another shell.
std::optional<std::string> completion_of(std::string_view shell);

}  // namespace jouleprof::cli
