// Checks of options' values, in words for people.
#pragma once

#include <CLI/CLI.hpp>

namespace jouleprof::cli {

CLI::Validator above_zero();    // a number
CLI::Validator not_negative();  // a number

// What every option of a verb takes: something, and no sign before a count.
void check_all_options(CLI::App& app);

}  // namespace jouleprof::cli
