#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "report/quantity.h"
#include "report/text/activity/activity_context.h"

namespace jouleprof::report {
namespace {

using model::ActivityRow;

// A layer's name without its parent's.
std::string label_of(const ActivityContext& c, const ActivityLine& line) {
  std::string_view name = line.row->name;
  if (line.depth > 0) {
    const std::string& parent = rows_of(c.profile, c.options.by)[line.row->parent].name;
    if (name.starts_with(parent + ".")) name.remove_prefix(parent.size() + 1);
  }
  std::string label = std::string(2 * line.depth, ' ') + c.safe(name);
  if (!line.row->detail.empty() && line.row->detail != name) {
    label += "  " + c.safe(line.row->detail);
  }
  return label;
}

// Of a row with all rows below it, as its energy is.
struct Ran {
  Duration busy{};
  std::uint64_t launches = 0;
};

std::vector<Ran> with_rows_below(const std::vector<ActivityRow>& rows) {
  std::vector<Ran> out;
  for (const auto& row : rows) out.push_back({row.busy, row.launches});
  // A parent comes before its children.
  for (std::size_t i = rows.size(); i-- > 0;) {
    if (rows[i].parent >= i) continue;
    out[rows[i].parent].busy += out[i].busy;
    out[rows[i].parent].launches += out[i].launches;
  }
  return out;
}

}  // namespace

Lines part_lines(const ActivityContext& c) {
  Lines lines;
  const bool calls = std::any_of(c.view.lines.begin(), c.view.lines.end(),
                                 [](const auto& line) { return line.row->count > 0; });
  std::vector<std::string> headings{std::string(to_string(c.options.by)),
                                    calls ? "calls" : "launches",
                                    "time",
                                    "energy",
                                    "<95 %",
                                    "share"};
  if (c.view.tree) headings.emplace_back("own");
  Table table(std::move(headings));
  std::string missing;
  const auto& rows = rows_of(c.profile, c.options.by);
  const auto ran = with_rows_below(rows);
  for (const auto& line : c.view.lines) {
    const ActivityRow& row = *line.row;
    const auto& whole = whole_of(row);
    const auto share = share_of(c.profile, whole);
    const bool known = whole && row.resolvable;
    const Ran& all = ran[static_cast<std::size_t>(line.row - rows.data())];
    const std::uint64_t count = calls ? row.count : all.launches;
    std::vector<Cell> cells{
        {label_of(c, line)},
        {count > 0 ? count_text(count) : "-"},
        {all.busy > Duration{} ? duration_text(all.busy) : "-"},
        {known   ? energy_text(whole->energy)
         : whole ? "not resolvable"
                 : "unavailable",
         known ? Style::kBold : Style::kAttention},
        {known   ? c.plus_minus(whole->error, whole->energy) + remembered_mark(row)
         : whole ? (c.text.ascii ? "<=" : "\xE2\x89\xA4") + energy_text(whole->high())
                 : ""},
        {known && share ? percent_text(*share) : "-"}};
    if (c.view.tree) cells.push_back({known && row.energy ? energy_text(row.energy->energy) : "-"});
    table.add(std::move(cells));
    if (missing.empty() && !known) missing = row.reason;
  }
  for (auto& made : table.lines(c.width, c.text.colour)) lines.push_back(std::move(made));
  if (!missing.empty()) c.note(lines, "reason", Style::kAttention, c.safe(missing), 2);
  return lines;
}

}  // namespace jouleprof::report
