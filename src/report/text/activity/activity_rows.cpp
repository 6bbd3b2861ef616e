#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>

#include "report/cells.h"
#include "report/quantity.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using model::ActivityRow;

constexpr std::size_t kIndent = 11;     // below a table's first column
constexpr std::size_t kMostLines = 99;  // of a remark

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

}  // namespace

Lines kernel_lines(const ActivityContext& c) {
  Table table({"#", "energy", "<95 %", "share", "launches", "GPU time", "W", "per launch"});
  std::vector<std::string> names;
  for (const auto& line : c.view.lines) names.push_back(c.safe(line.row->name));
  names = shortened_names(names, c.width - kIndent);
  std::size_t rank = 0;
  for (const auto& line : c.view.lines) {
    const ActivityRow& row = *line.row;
    std::vector<Cell> cells{{fmt::format("{}", rank + 1)}};
    const bool known = row.energy && row.resolvable;
    const auto per_launch = joules_per_launch(row);
    const auto power = power_of(row);
    const auto share = share_of(c.profile, row.energy);
    cells.push_back({known ? energy_text(row.energy->energy) : "-", Style::kBold});
    cells.push_back({known ? c.plus_minus(*row.energy) + remembered_mark(row) : ""});
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
    for (auto& [text, style] : more) table.add_text({}, {std::move(text), style}, kMostLines);
    ++rank;
  }
  return table.lines(c.width, c.text.colour);
}

namespace {

constexpr std::string_view kDots = "...";

// "void f<T>(T*)" is "f<T>". The parentheses of "(anonymous namespace)" and of function types
// within the template arguments stay.
std::string_view core_of(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  std::string_view rest = name;
  if (rest.ends_with(" const")) rest.remove_suffix(6);
  if (!rest.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t i = rest.size(); i-- > 0;) {
    if (rest[i] == ')') ++depth;
    if (rest[i] == '(' && --depth == 0) {
      // After a blank it is no list of parameters: "memcpy (host to device)".
      return i > 0 && rest[i - 1] != ' ' ? rest.substr(0, i) : name;
    }
  }
  return name;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

// Where a character begins, at or before `i`.
std::size_t boundary(std::string_view text, std::size_t i) {
  while (i > 0 && i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
  return std::min(i, text.size());
}

std::string cut(std::string_view name, std::size_t width, std::size_t differs) {
  if (display_width(name) <= width) return std::string(name);
  if (width < 4 * kDots.size()) return fit(name, width);
  const std::size_t room = width - kDots.size();
  const std::size_t head = room * 2 / 5;
  const std::size_t tail = room - head;
  // Both ends show the difference.
  if (differs < head || differs + tail >= name.size()) {
    return std::string(name.substr(0, boundary(name, head))) + std::string(kDots) +
           std::string(name.substr(boundary(name, name.size() - tail)));
  }
  // A little before it, for the reader's bearings.
  const std::size_t from = boundary(name, std::max(head, differs - std::min(differs, tail / 4)));
  const std::size_t length = tail - kDots.size();
  return fit(std::string(name.substr(0, boundary(name, head))) + std::string(kDots) +
                 std::string(name.substr(from, boundary(name, from + length) - from)) +
                 std::string(kDots),
             width);
}

}  // namespace

std::vector<std::string> shortened_names(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string_view> cores;
  for (const auto& name : names) cores.push_back(core_of(name));
  // In alphabetical order the most similar name is a neighbour.
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return cores[a] < cores[b]; });
  std::vector<std::size_t> differs(names.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto a = order[i - 1];
    const auto b = order[i];
    if (cores[a] == cores[b]) {
      differs[b] = std::max(differs[b], differs[a]);
      continue;
    }
    const std::size_t common = common_prefix(cores[a], cores[b]);
    differs[a] = std::max(differs[a], common);
    differs[b] = std::max(differs[b], common);
  }
  std::vector<std::string> shortened;
  for (std::size_t i = 0; i < names.size(); ++i) {
    shortened.push_back(cut(cores[i], width, differs[i]));
  }
  return shortened;
}

Lines part_lines(const ActivityContext& c) {
  const bool calls =
      std::ranges::any_of(c.view.lines, [](const auto& line) { return line.row->count > 0; });
  std::vector<std::string> headings{std::string(to_string(c.options.by)),
                                    calls ? "calls" : "launches",
                                    "time",
                                    "energy",
                                    "<95 %",
                                    "share"};
  // What a layer takes each time; of ranges what they take without those in them.
  if (calls || c.view.tree) headings.emplace_back(calls ? "a call" : "own");
  Table table(std::move(headings));
  std::string missing;
  for (const auto& line : c.view.lines) {
    const ActivityRow& row = *line.row;
    const auto& whole = whole_of(row);
    const auto share = share_of(c.profile, whole);
    const bool known = whole && row.resolvable;
    const std::uint64_t count = calls ? row.count : line.launches;
    std::vector<Cell> cells{
        {label_of(c, line)},
        {count > 0 ? count_text(count) : "-"},
        {line.busy > Duration{} ? duration_text(line.busy) : "-"},
        {known   ? energy_text(whole->energy)
         : whole ? "not resolvable"
                 : "unavailable",
         known ? Style::kBold : Style::kAttention},
        {known   ? c.plus_minus(*whole) + remembered_mark(row)
         : whole ? (c.text.ascii ? "<=" : "\xE2\x89\xA4") + energy_text(whole->high())
                 : ""},
        {known && share ? percent_text(*share) : "-"}};
    const auto call = joules_per_call(row);
    if (calls) {
      cells.push_back({known && call ? energy_text(Energy::joules(*call)) : "-"});
    } else if (c.view.tree) {
      cells.push_back({known && row.energy ? energy_text(row.energy->energy) : "-"});
    }
    table.add(std::move(cells));
    if (missing.empty() && !known) missing = row.reason;
  }
  Lines lines = table.lines(c.width, c.text.colour);
  if (!missing.empty()) c.note(lines, "reason", Style::kAttention, c.safe(missing), 2);
  return lines;
}

}  // namespace jouleprof::report
