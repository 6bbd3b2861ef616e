#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/text.h"
#include "model/window_sum.h"
#include "report/cells.h"
#include "report/format/format.h"
#include "report/quantity.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using model::Measurement;
using model::WindowEnergy;
using model::WindowGroup;
using Groups = std::vector<const WindowGroup*>;

// Domains whose energies are shown as one figure.
struct Column {
  std::string label;
  std::vector<std::size_t> domains;
};

// One for each kind of domain that adds up to a total; where nothing does, one for each domain.
std::vector<Column> columns_of(const TextContext& c, const Groups& groups) {
  model::Profile known;
  for (const auto& d : c.profile.domains) known.domains.emplace_back().domain = d.domain;
  for (const WindowGroup* group : groups) {
    for (std::size_t d = 0; d < group->energies.size() && d < known.domains.size(); ++d) {
      const WindowEnergy& e = group->energies[d];
      auto& any = known.domains[d].energy;
      if (!any && e.count > 0) any = e.energy.value_or(Measurement{});
    }
  }
  // A device without a figure of which some of the windows are, next to others of its kind.
  const auto is_known = [&](model::DomainKind kind) {
    return std::ranges::any_of(known.domains, [&](const model::DomainProfile& d) {
      return d.energy && d.domain.kind == kind;
    });
  };
  for (std::size_t d = 0; d < known.domains.size(); ++d) {
    const bool lacks = std::ranges::any_of(groups, [&](const WindowGroup* group) {
      return d < group->energies.size() && lacks_monitors(group->energies[d]);
    });
    auto& of = known.domains[d];
    if (lacks && !of.energy && is_known(of.domain.kind)) of.energy = Measurement{};
  }
  std::vector<Column> columns;
  std::vector<model::DomainKind> kinds;
  const auto place = [&](const model::DomainProfile* d) {
    return static_cast<std::size_t>(d - known.domains.data());
  };
  for (const auto* d : total_of(known).counted) {
    const auto kind = std::ranges::find(kinds, d->domain.kind);
    if (kind == kinds.end()) {
      kinds.push_back(d->domain.kind);
      columns.push_back({c.labels[place(d)], {place(d)}});
    } else {
      Column& column = columns[static_cast<std::size_t>(kind - kinds.begin())];
      column.domains.push_back(place(d));
      column.label = fmt::format("{} {}", column.domains.size(), to_string(d->domain.kind));
    }
  }
  if (!columns.empty()) return columns;
  for (std::size_t d = 0; d < known.domains.size(); ++d) {
    if (known.domains[d].energy) columns.push_back({c.labels[d], {d}});
  }
  return columns;
}

// Energy of one window on average. Domains' errors add up as in a Total. Of imported windows only
// the energy is set.
std::optional<Measurement> mean_in(const WindowGroup& group, const Column& column) {
  Measurement sum;
  sum.provenance = model::Provenance::kUnavailable;
  bool any = false;
  for (const std::size_t d : column.domains) {
    const WindowEnergy& e = group.energies[d];
    if (e.reason == model::kNoWindowMeasures) continue;
    if (e.count == 0) return std::nullopt;
    // Over several devices, windows of monitors with other devices took nothing of this one.
    const bool is_one = column.domains.size() == 1;
    if (!is_one && lacks_monitors(e)) return std::nullopt;
    const std::size_t windows = e.reason.empty() && !is_one ? group.count : e.count;
    any = true;
    if (e.reported) sum.energy += model::mean_of(*e.reported, windows);
    if (!e.energy) continue;
    add(sum, mean_of(singles_of(e), windows));
  }
  if (!any) return std::nullopt;
  return sum;
}

std::optional<Energy> total_in(const WindowGroup& group, const Column& column) {
  if (!mean_in(group, column)) return std::nullopt;
  Energy sum;
  for (const std::size_t d : column.domains) {
    const WindowEnergy& e = group.energies[d];
    if (e.count < group.count && !e.reason.empty() && e.reason != model::kNoWindowMeasures) {
      return std::nullopt;
    }
    sum += e.energy ? e.energy->energy : e.reported.value_or(Energy{});
  }
  return sum;
}

// A device that some of these windows lack has no mean: windows of other names took other energies.
WindowGroup folded(const Groups& groups) {
  WindowGroup rest;
  rest.imported = groups.front()->imported;
  rest.energies.resize(groups.front()->energies.size());
  std::vector<model::WindowSum> sums(rest.energies.size());
  std::vector<model::WindowSum> singles(rest.energies.size());
  std::vector<bool> lacks(rest.energies.size());
  for (const WindowGroup* group : groups) {
    rest.count += group->count;
    rest.total_time += group->total_time;
    for (std::size_t d = 0; d < rest.energies.size(); ++d) {
      const WindowEnergy& e = group->energies[d];
      rest.energies[d].count += e.count;
      if (e.reason != model::kNoWindowMeasures && rest.energies[d].reason.empty()) {
        rest.energies[d].reason = e.reason;
      }
      if (!is_whole(*group, e) && e.reason != model::kNoWindowMeasures) lacks[d] = true;
      if (e.energy) sums[d].add(*e.energy);
      if (e.energy) singles[d].add(singles_of(e));
      if (e.reported)
        rest.energies[d].reported = rest.energies[d].reported.value_or(Energy{}) + *e.reported;
    }
  }
  for (std::size_t d = 0; d < sums.size(); ++d) {
    rest.energies[d].energy = sums[d].sum();
    rest.energies[d].singles = singles[d].sum();
    if (lacks[d]) rest.energies[d].count = 0;
  }
  return rest;
}

std::string heading_of(std::string label) {
  std::ranges::replace(label, '_', ' ');
  if (label.ends_with(" watts")) label.replace(label.size() - 5, 5, "W");
  return label;
}

// The names of the labels, where all windows have the same ones.
std::vector<std::string> common_labels(const Groups& groups) {
  std::vector<std::string> names;
  for (const auto& label : groups.front()->labels) names.push_back(label.name);
  for (const WindowGroup* group : groups) {
    const bool same =
        std::equal(group->labels.begin(), group->labels.end(), names.begin(), names.end(),
                   [](const auto& l, const auto& n) { return l.name == n; });
    if (!same) return {};
  }
  return names;
}

// Whether the labels have each word of the name, as those of a sweep that it is made of.
bool says_name(const WindowGroup* group) {
  const auto words = split_blanks(group->name);
  return std::ranges::all_of(words, [&](std::string_view word) {
    return std::ranges::any_of(group->labels, [&](const auto& label) {
      return label.value.find(word) != std::string::npos;
    });
  });
}

// For a device of which a part of the imported windows has a figure: how many have none. Empty for
// any other.
std::string imported_gap(const TextContext& c, std::size_t domain) {
  std::uint64_t have = 0;
  std::uint64_t all = 0;
  for (const WindowGroup& group : c.profile.windows) {
    if (!group.imported) continue;
    have += group.energies[domain].count;
    all += group.count;
  }
  if (have == 0 || have == all) return {};
  return fmt::format("{} of {} imported windows have no figure in the file", all - have, all);
}

class Block {
 public:
  Block(const TextContext& c, const Groups& groups)
      : c_(c),
        columns_(columns_of(c, groups)),
        single_(std::ranges::all_of(groups,
                                    [](const WindowGroup* group) { return group->count == 1; })) {}

  // Splits the groups into those with a row of their own and the rest: where there are too many,
  // those that took most keep theirs. A table made by another tool is cut where it is.
  std::pair<Groups, Groups> choose(const Groups& groups, std::size_t most) const {
    if (groups.size() <= most + 1) return {groups, {}};
    std::vector<std::size_t> order(groups.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!groups.front()->imported) {
      // Also of windows that lack a device: what is known of them.
      const auto weight = [&](std::size_t i) {
        Energy joules;
        if (!columns_.empty()) {
          for (const std::size_t d : columns_.front().domains) {
            const WindowEnergy& e = groups[i]->energies[d];
            if (e.energy) joules += singles_of(e).energy;
          }
        }
        return std::pair(joules, groups[i]->total_time);
      };
      std::vector<std::pair<Energy, Duration>> weights;
      for (const std::size_t i : order) weights.push_back(weight(i));
      std::ranges::stable_sort(
          order, [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    }
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most));
    std::pair<Groups, Groups> chosen;
    for (std::size_t i = 0; i < order.size(); ++i) {
      (i < most ? chosen.first : chosen.second).push_back(groups[order[i]]);
    }
    return chosen;
  }

  // `labels` have a column each, after the name where it is shown.
  Lines lines(const Groups& shown, const Groups& rest, const std::vector<std::string>& labels,
              bool named) {
    const bool imported = shown.front()->imported;
    std::vector<std::string> headings;
    if (named) headings.push_back(imported ? "imported window" : "window");
    for (const std::string& name : labels) headings.push_back(c_.safe(heading_of(name)));
    const std::size_t words = headings.size();
    if (!single_) headings.push_back("count");
    headings.push_back(single_ ? "time" : "time each");
    for (const Column& column : columns_) {
      headings.push_back(column.label + (single_ ? "" : " each"));
      if (!imported) headings.push_back("95 %");
    }
    if (shows_total()) headings.push_back("total");
    Table table(headings);
    for (const WindowGroup* group : shown) {
      std::vector<Cell> row;
      if (named) row.push_back({c_.safe(group->name)});
      for (const auto& label : group->labels) {
        const bool shows = std::ranges::find(labels, label.name) != labels.end();
        if (shows) row.push_back({c_.safe(label.value)});
      }
      table.add(with_figures(std::move(row), *group));
    }
    if (!rest.empty()) {
      std::vector<Cell> row{{fmt::format("{} more{}", rest.size(), single_ ? ", mean" : "")}};
      for (std::size_t i = 1; i < words; ++i) row.push_back({"-"});
      table.add(with_figures(std::move(row), folded(rest)));
    }
    const bool is_said = c_.text.is_brief() && c_.total.reported;  // by the headline
    if (imported && !is_said) {
      table.add_text(
          {"", Style::kAttention},
          {"Measured by another tool; the error of its figures is not known.", Style::kAttention},
          2);
    }
    if (imported) {
      for (const Column& column : columns_) add_gaps(table, column);
    }
    add_reason(table, shown);
    fits_ = table.fits(c_.width);
    return table.lines(c_.width, c_.text.colour);
  }

  // Of the last lines: no column continues below.
  bool fits() const { return fits_; }

 private:
  bool shows_total() const { return columns_.size() == 1 && !single_; }

  std::vector<Cell> with_figures(std::vector<Cell> row, const WindowGroup& group) const {
    if (!single_) row.push_back({std::to_string(group.count)});
    row.push_back({duration_text(group.mean_time())});
    for (const Column& column : columns_) {
      const auto mean = mean_in(group, column);
      if (!mean) {
        row.push_back({"-"});
        if (!group.imported) row.push_back({"-"});
        continue;
      }
      const Style style = group.imported ? Style::kPlain : style_of(mean->provenance);
      row.push_back({energy_text(mean->energy), style});
      if (!group.imported) row.push_back({c_.plus_minus(*mean)});
    }
    if (shows_total()) {
      const auto total = total_in(group, columns_.front());
      row.push_back({total ? energy_text(*total) : "-"});
    }
    return row;
  }

  void add_gaps(Table& table, const Column& column) const {
    for (const std::size_t d : column.domains) {
      const std::string gap = imported_gap(c_, d);
      if (!gap.empty()) {
        table.add_text({c_.labels[d], Style::kAttention}, {gap, Style::kAttention}, 2);
      }
    }
  }

  // Figures that are no measurements, and the first that is missing.
  void add_reason(Table& table, const Groups& shown) const {
    for (const Column& column : columns_) {
      for (const WindowGroup* group : shown) {
        const auto mean = mean_in(*group, column);
        if (group->imported || !mean || mean->provenance == model::Provenance::kMeasured) continue;
        table.add_text({column.label, style_of(mean->provenance)},
                       {provenance_word(mean->provenance), style_of(mean->provenance)}, 1);
        break;
      }
    }
    for (const Column& column : columns_) {
      for (const std::size_t d : column.domains) {
        for (const WindowGroup* group : shown) {
          const WindowEnergy& e = group->energies[d];
          if (group->imported || e.count == group->count || e.reason.empty()) continue;
          if (e.reason == model::kNoWindowMeasures) continue;
          table.add_text({c_.labels[d], Style::kAttention},
                         {fmt::format("{} of {} '{}' without a figure: {}", lacking_in(*group, e),
                                      lacking_in(*group, e) + e.count, c_.safe(group->name),
                                      c_.safe(e.reason)),
                          Style::kAttention},
                         2);
          return;
        }
      }
    }
  }

  const TextContext& c_;
  std::vector<Column> columns_;
  bool single_;  // no name has more than one window
  bool fits_ = true;
};

Lines lines_of(const TextContext& c, const Groups& groups, std::size_t most) {
  if (groups.empty()) return {};
  Block block(c, groups);
  const auto [shown, rest] = block.choose(groups, most);
  std::vector<std::string> labels = common_labels(groups);
  const Lines lines = block.lines(shown, rest, labels, labels.empty());
  const bool is_said = std::ranges::all_of(groups, says_name);
  if (block.fits() && (labels.empty() || is_said)) return lines;
  // Then the name, and what it does not say; in a summary not what is the same in all rows.
  std::erase_if(labels, [&](const std::string& label) {
    const auto value_in = [&](const WindowGroup* group) -> const std::string& {
      return std::ranges::find_if(group->labels, [&](const auto& l) { return l.name == label; })
          ->value;
    };
    const std::string& first = value_in(groups.front());
    return std::ranges::all_of(groups, [&](const WindowGroup* group) {
      const std::string& value = value_in(group);
      return (c.text.is_brief() && value == first) || group->name.find(value) != std::string::npos;
    });
  });
  return block.lines(shown, rest, labels, true);
}

std::optional<Energy> mean_of_any(const WindowEnergy& e) {
  if (e.count == 0) return std::nullopt;
  if (e.energy) return mean_of(e)->energy;
  if (e.reported) return model::mean_of(*e.reported, e.count);
  return std::nullopt;
}

class Writer {
 public:
  explicit Writer(const TextContext& c) : c_(c) {}

  std::string write() {
    for (const std::size_t i : c_.shown) {
      const auto has_figure = [&](const WindowGroup& g) {
        return mean_of_any(g.energies[i]).has_value();
      };
      const auto& groups = c_.profile.windows;
      if (std::ranges::any_of(groups, has_figure)) domains_.push_back(i);
    }
    Table table({"window", "<device", "count", "time each", "energy each", "95 %", "median",
                 "<quartiles", "dynamic", "total", "<"});
    for (const WindowGroup& group : c_.profile.windows) add(table, group);
    table_ = table.lines(c_.width, c_.text.colour);
    for (const std::size_t d : domains_) {
      const std::string gap = imported_gap(c_, d);
      if (!gap.empty()) c_.note(table_, c_.labels[d], Style::kAttention, gap, 3);
    }
    c_.note(
        table_, "", Style::kDim,
        "95 %: of the mean. Median and quartiles: of single windows, the sensor's noise "
        "included; only of 4 or more windows, most of them as long as the sensor resolves. "
        "Dynamic: above rest, of a window on average. A window has all energy of its devices in "
        "its time. Total: where windows of several processes overlap, each time counts once.",
        6);
    return joined_lines(table_);
  }

 private:
  std::string label_of(const WindowGroup& group) const {
    std::string label = group.name;
    for (const auto& [name, value] : group.labels) label += " " + name + "=" + value;
    return c_.safe(label);
  }

  void add(Table& table, const WindowGroup& group) {
    bool is_first = true;
    for (const std::size_t d : domains_) {
      const WindowEnergy& e = group.energies[d];
      if (e.reason == model::kNoWindowMeasures) continue;
      const auto mean = mean_of_any(e);
      const auto interval = mean_of(e);
      const auto& q = e.quartiles;
      const auto& rest = e.levels.rest;
      // Levels are of the shared time, and not of single windows.
      const auto dynamic =
          e.energy && rest && e.count > 0 && !e.singles
              ? std::optional(model::mean_of(e.energy->energy - rest->energy, e.count))
              : std::nullopt;
      const bool is_of_all = e.count == group.count;
      const bool has_sum = is_of_all || is_whole(group, e);
      const std::string count =
          is_of_all || !has_sum
              ? is_first ? std::to_string(group.count) : ""
              : fmt::format("{} of {}", e.count, group.count);  // others do not measure it
      const auto total = e.energy ? std::optional(e.energy->energy) : e.reported;
      const Style style = e.energy ? style_of(e.energy->provenance) : Style::kPlain;
      const auto text = [](const std::optional<Energy>& energy) {
        return energy ? energy_text(*energy) : std::string("-");
      };
      table.add({{is_first ? label_of(group) : "", Style::kBold},
                 {c_.labels[d]},
                 {count},
                 {is_first ? duration_text(group.mean_time()) : ""},
                 {text(mean), style},
                 {interval ? c_.plus_minus(*interval) : "-"},
                 {q ? energy_text(q->median) : "-"},
                 {q ? energy_text(q->lower) + " to " + energy_text(q->upper) : "-"},
                 {text(dynamic)},
                 {has_sum ? text(total) : "-"},
                 {group.imported ? "imported"
                  : e.energy     ? provenance_word(e.energy->provenance)
                                 : "unavailable",
                  style}});
      if (!is_of_all && !e.reason.empty() && !group.imported) {
        table.add_text(
            {"", Style::kAttention},
            {fmt::format("{}: {} of {} without a figure: {}", c_.labels[d], lacking_in(group, e),
                         lacking_in(group, e) + e.count, c_.safe(e.reason)),
             Style::kAttention},
            3);
      }
      is_first = false;
    }
    if (!is_first) return;
    table.add({{label_of(group), Style::kBold},
               {"-"},
               {std::to_string(group.count)},
               {duration_text(group.mean_time())},
               {"-"},
               {"-"},
               {"-"},
               {"-"},
               {"-"},
               {"-"},
               {"unavailable", Style::kAttention}});
  }

  const TextContext& c_;
  std::vector<std::size_t> domains_;
  Lines table_;
};

}  // namespace

Lines window_block(const TextContext& c, std::size_t most) {
  Groups live;
  Groups imported;
  for (const WindowGroup& group : c.profile.windows) {
    (group.imported ? imported : live).push_back(&group);
  }
  Lines lines = lines_of(c, live, most);
  append(lines, lines_of(c, imported, most));
  return lines;
}

std::string windows_to_text(const model::Profile& profile, const TextOptions& options) {
  return Writer(TextContext(profile, options)).write();
}

}  // namespace jouleprof::report
