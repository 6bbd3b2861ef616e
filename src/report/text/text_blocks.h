// The blocks of the text summary, and what the tables of attributed energies share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"
#include "report/activity/activity.h"
#include "report/cells.h"
#include "report/text/table.h"
#include "report/total.h"

namespace jouleprof::report {

// What all blocks share. Refers to the profile and the options it was made of.
struct TextContext : TextStyle {
  TextContext(const model::Profile& profile, const TextOptions& options);

  const model::Profile& profile;
  Total total;
  std::vector<std::string> labels;  // of the domains, in their order
  // Indices of domains: with a row of their own, sharing one, and not visible to the command.
  std::vector<std::size_t> shown;
  std::vector<std::size_t> folded;
  std::vector<std::size_t> hidden;

  using TextStyle::plus_minus;
  std::string plus_minus(Energy error, Energy of) const;
};

// The answer in everyday words: energy of all devices, the command's part of it, and the kinds of
// devices that it is of.
Lines answer_block(const TextContext& context);
Lines domain_block(const TextContext& context);
// The domain's block in few columns and at most `most` lines.
Lines brief_domain_block(const TextContext& context, std::size_t most);
// What GPUs drew at rest, held by a context and above, and why that is not known.
Lines level_block(const TextContext& context);
Lines balance_block(const TextContext& context);
// At most `most` windows of either kind, measured and imported, and a line for the rest.
Lines window_block(const TextContext& context, std::size_t most);
Lines process_block(const TextContext& context, std::size_t most);

Style style_of(model::Provenance p);

// --- What the tables of attributed energies share; private to this folder ---

// One device's section. Refers to what it was made of.
struct ActivityContext : TextStyle {
  ActivityContext(const model::ActivityProfile& profile, const ActivityOptions& options,
                  const TextOptions& text);

  const model::ActivityProfile& profile;
  const ActivityOptions& options;
  ActivityView view;

  std::string with_error(const model::Measurement& m) const;  // "12.10 kJ +-1.5 %"
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
