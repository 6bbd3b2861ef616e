#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "report/cells.h"
#include "report/quantity.h"
#include "report/text/activity/activity_context.h"
#include "report/text/activity/kernel_names.h"

namespace jouleprof::report {
namespace {

using model::ActivityRow;

constexpr std::size_t kIndent = 11;  // below a table's first column

// One launch can take less than the smallest unit of Energy.
std::string small_energy_text(double joules) {
  const double size = std::abs(joules);
  if (size == 0 || size >= 0.000'999'5) return energy_text(Energy::joules(joules));
  return number_text(joules * 1e6) + " uJ";
}

// On the line of the name where both have room.
void append_detail(const ActivityContext& c, std::vector<std::pair<std::string, Style>>& more,
                   const std::string& detail) {
  std::string& name = more.back().first;
  if (display_width(name) + 2 + display_width(detail) <= c.width - kIndent) {
    name += "  " + detail;
  } else {
    more.emplace_back(fit(detail, c.width - kIndent), Style::kDim);
  }
}

std::vector<std::string> remarks_of(const ActivityContext& c, const ActivityRow& row) {
  std::vector<std::string> remarks;
  if (!row.energy) {
    remarks.push_back("unavailable: " + c.safe(row.reason));
  } else if (!row.resolvable) {
    // The next remark has the reason of a group.
    const bool has_reason = !row.reason.empty() && row.group == model::kNone;
    remarks.push_back(fmt::format("not resolvable, upper bound {}{}{}",
                                  energy_text(row.energy->high()), has_reason ? ": " : "",
                                  has_reason ? c.safe(row.reason) : ""));
  }
  if (row.group != model::kNone) {
    std::string others;
    for (std::size_t i = 0; i < c.view.lines.size(); ++i) {
      const ActivityRow& other = *c.view.lines[i].row;
      if (&other == &row || other.group != row.group) continue;
      others += fmt::format("{}#{}", others.empty() ? "" : ", ", i + 1);
    }
    std::string text = "collinear with ";
    text += others.empty() ? "others of its group" : others;
    if (row.group_energy) text += "; their sum is " + c.with_error(*row.group_energy);
    if (row.energy && row.resolvable && !row.reason.empty()) text += "; " + c.safe(row.reason);
    remarks.push_back(std::move(text));
  } else if (row.energy && row.resolvable && !row.reason.empty()) {
    remarks.push_back(c.safe(row.reason));
  }
  return remarks;
}

}  // namespace

Lines kernel_lines(const ActivityContext& c) {
  Lines lines;
  Table table({"#", "energy", "<95 %", "share", "launches", "GPU time", "W", "per launch"});
  std::vector<std::string> names;
  for (const auto& line : c.view.lines) names.push_back(c.safe(line.row->name));
  names = shortened_names(names, c.width - kIndent);
  std::vector<std::vector<std::pair<std::string, Style>>> below;
  std::size_t rank = 0;
  for (const auto& line : c.view.lines) {
    const ActivityRow& row = *line.row;
    std::vector<Cell> cells{{fmt::format("{}", rank + 1)}};
    const bool known = row.energy && row.resolvable;
    const auto per_launch = joules_per_launch(row);
    const auto power = power_of(row);
    const auto share = share_of(c.profile, row.energy);
    cells.push_back({known ? energy_text(row.energy->energy) : "-", Style::kBold});
    cells.push_back(
        {known ? c.plus_minus(row.energy->error, row.energy->energy) + remembered_mark(row) : ""});
    cells.push_back({known && share ? percent_text(*share) : "-"});
    cells.push_back({count_text(row.launches)});
    cells.push_back({duration_text(row.busy)});
    cells.push_back({known && power ? number_text(power->watts()) : "-"});
    cells.push_back({known && per_launch ? small_energy_text(*per_launch) : "-"});
    table.add(std::move(cells));
    std::vector<std::pair<std::string, Style>> more;
    more.emplace_back(names[rank], Style::kPlain);
    if (!row.detail.empty()) append_detail(c, more, c.safe(row.detail));
    for (auto& remark : remarks_of(c, row)) more.emplace_back(std::move(remark), Style::kAttention);
    below.push_back(std::move(more));
    ++rank;
  }
  const Lines figures = table.lines(c.width, c.text.colour);
  lines.push_back(figures.front());
  for (std::size_t i = 0; i < below.size(); ++i) {
    lines.push_back(figures[i + 1]);
    for (const auto& [text, style] : below[i]) {
      const bool is_remark = style == Style::kAttention;
      for (const auto& piece : is_remark ? wrap(text, c.width - kIndent) : Lines{text}) {
        lines.push_back(std::string(kIndent, ' ') + paint(piece, style, c.text.colour));
      }
    }
  }
  return lines;
}

}  // namespace jouleprof::report
