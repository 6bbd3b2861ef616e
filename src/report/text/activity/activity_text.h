// What the tables of attributed energies share. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/activity/activity.h"
#include "report/text/table.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {

// One device's section. Refers to what it was made of.
struct ActivityContext {
  ActivityContext(const model::ActivityProfile& profile, const ActivityOptions& options,
                  const TextOptions& text);

  const model::ActivityProfile& profile;
  const ActivityOptions& options;
  const TextOptions& text;
  std::size_t width;
  ActivityView view;

  std::string safe(std::string_view words) const;
  std::string plus_minus(const model::Measurement& m) const;  // of its error
  std::string with_error(const model::Measurement& m) const;  // "12.10 kJ +-1.5 %"
  // A label at the left, and a text to the right of it.
  void note(Lines& lines, std::string_view label, Style style, std::string_view words,
            std::size_t most, Style text_style = Style::kPlain) const;
};

// After an interval that rests on earlier runs; else nothing.
const char* remembered_mark(const model::ActivityRow& row);

// Two or more lines a kernel: figures, and a name that has room. The view is not empty.
Lines kernel_lines(const ActivityContext& context);
// Layers, ranges and phases: one line each. The view is not empty.
Lines part_lines(const ActivityContext& context);

std::string count_text(std::uint64_t count);  // "1 234 567"

// Kernels' names in the columns of a terminal.

// Each name in at most `width` columns. Without the return type and the parameters, which say what
// the template arguments say; what is still too long is cut around the place where it begins to
// differ from the name that is most like it, so that two names do not look the same.
std::vector<std::string> shortened_names(const std::vector<std::string>& names, std::size_t width);

}  // namespace jouleprof::report
