// The blocks of the text summary.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"
#include "report/render.h"
#include "report/text/table.h"
#include "report/total.h"

namespace jouleprof::report {

// What all blocks share. Refers to the profile and the options it was made of.
struct TextContext {
  TextContext(const model::Profile& profile, const TextOptions& options);

  const model::Profile& profile;
  const TextOptions& options;
  std::size_t width;
  Total total;
  std::vector<std::string> labels;  // of the domains, in their order
  // Indices of domains: with a row of their own, sharing one, and not visible to the command.
  std::vector<std::size_t> shown;
  std::vector<std::size_t> folded;
  std::vector<std::size_t> hidden;

  std::string safe(std::string_view text) const;
  std::string plus_minus(Energy error, Energy of) const;
  std::string plus_minus(const model::Measurement& m) const;  // of its error
  // A label at the left, and a text to the right of it.
  void note(Lines& lines, std::string_view label, Style style, std::string_view text,
            std::size_t max_lines, Style text_style = Style::kPlain) const;
};

// The answer in everyday words: energy of all devices, the command's part of it, and the kinds of
// devices that it is of.
Lines answer_block(const TextContext& context);
Lines domain_block(const TextContext& context);
// The same in few columns and at most `most` lines.
Lines brief_domain_block(const TextContext& context, std::size_t most);
// What GPUs drew at rest, held by a context and above, and why that is not known.
Lines level_block(const TextContext& context);
Lines balance_block(const TextContext& context);
// At most `most` windows of either kind, measured and imported, and a line for the rest.
Lines window_block(const TextContext& context, std::size_t most);
Lines process_block(const TextContext& context, std::size_t most);

// For a device of which a part of the imported windows has a figure: how many have none. Empty for
// any other.
std::string imported_gap(const TextContext& context, std::size_t domain);

Style style_of(model::Provenance p);

}  // namespace jouleprof::report
