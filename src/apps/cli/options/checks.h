// Checks of options' values, in words for people.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

CLI::Validator above_zero();    // a number
CLI::Validator not_negative();  // a number
CLI::Validator a_duration();    // with its unit
CLI::Validator one_of(std::vector<std::string> words);

// The candidate that a mistyped `word` most likely stands for; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// A regular expression with one group, for a number in what a command prints.
// Errors: invalid_argument, with `example`.
Result<void> check_number_expression(std::string_view option, const std::string& expression,
                                     std::string_view example);

// What every option of a verb takes: something, and no sign before a count.
void check_all_options(CLI::App& app);

}  // namespace jouleprof::cli
