// A profile as people and programs read it.
#pragma once

#include <optional>
#include <string>

#include "model/profile.h"
#include "report/total.h"

namespace jouleprof::report {

struct TextOptions {
  bool colour = false;
  int width = 80;  // columns of the terminal
  // Lines of the terminal, to stay within; many devices, windows or warnings may take more. A file
  // or pipe has none: each finding is there in full.
  std::optional<int> height;
  bool whole_machine = false;  // quote the energy of all devices, and not the command's
  // With the balance, levels, repeatability, own cost and all findings. Without them, the answer
  // and what it is made of: at most 15 lines where there is a height.
  bool details = true;
  std::size_t lines_below = 0;  // of those 15, for units and costs
  // What a terminal shows of a summary without details.
  bool is_brief() const { return !details && height.has_value(); }
  bool ascii = false;          // "+-" instead of the sign, '?' for what is beyond ASCII
  std::string recording_path;  // the last line names `jouleprof report` for it; may be empty
  std::string next_command;    // named in the last line instead, as it is
};

// At most one screen. Names are made harmless for a terminal.
std::string to_text(const model::Profile& profile, const TextOptions& options = {});
// The same with `below`, the lines of units and costs, under it.
std::string to_text(const model::Profile& profile, TextOptions options, const std::string& below);

struct Costs;
struct WallComparison;

// The documented JSON object (docs/json.md), indented, with a final newline. What is unavailable is
// null; energies have six decimals, so that sums are exact. Invalid UTF-8 becomes U+FFFD. `costs`,
// `wall`, `per`: nullptr where none were requested.
std::string to_json(const model::Profile& profile, const Costs* costs = nullptr,
                    const WallComparison* wall = nullptr, const PerUnit* per = nullptr);

// The table of --by window: a row for each name of windows and each domain with a figure, in order
// of first appearance.
std::string windows_to_text(const model::Profile& profile, const TextOptions& options);
std::string windows_to_json(const model::Profile& profile);  // docs/json.md; with a final newline
std::string windows_to_csv(const model::Profile& profile);   // of every domain

// Lines of money and carbon, for the end of a summary.
std::string costs_to_text(const Costs& costs, const TextOptions& text);

// Lines of the energy of one unit of work, for the end of a summary.
std::string per_unit_to_text(const PerUnit& per, const TextOptions& text);

// One row a domain, with a header. What is unavailable is an empty field.
std::string to_csv(const model::Profile& profile);

// One row a process, with a header; after the fixed columns one "NAME_joules" for each domain.
std::string processes_to_csv(const model::Profile& profile);

}  // namespace jouleprof::report
