#include "report/activity/fold_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "report/activity/activity.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::ActivityRow;
using model::Measurement;

void add(std::optional<Measurement>& sum, const std::optional<Measurement>& part) {
  if (!part || !sum) {
    sum.reset();
    return;
  }
  sum->energy += part->energy;
  sum->error += part->error;
  sum->repeatability += part->repeatability;
  sum->provenance = combine(sum->provenance, part->provenance);
}

// A row of several, and what each of them took.
struct Folded {
  ActivityRow row;
  std::vector<double> joules;
};

// Layers fold that differ in the numbers of their names alone: one type and shape has one detail
// and one number of parameters.
struct Key {
  std::uint32_t parent = model::kNone;
  std::string name;
  std::string detail;
  std::uint64_t parameters = 0;
  auto operator<=>(const Key&) const = default;
};

// Both names, with * for each number in which they differ.
std::string common_name(std::string_view a, std::string_view b) {
  const auto parts = split(a, '.');
  const auto others = split(b, '.');
  if (parts.size() != others.size()) return std::string(a);
  std::string name;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    name += i == 0 ? "" : ".";
    name += parts[i] == others[i] ? parts[i] : "*";
  }
  return name;
}

void add(Folded& folded, const ActivityRow& row) {
  ActivityRow& sum = folded.row;
  sum.count += row.count;
  sum.launches += row.launches;
  sum.busy += row.busy;
  if (sum.overlapped && row.overlapped) {
    *sum.overlapped += *row.overlapped;
  } else {
    sum.overlapped.reset();
  }
  add(sum.energy, row.energy);
  add(sum.inclusive, row.inclusive);
  if (!row.resolvable && sum.resolvable) {
    sum.resolvable = false;
    sum.reason = row.reason;
  }
  if (sum.macs != row.macs) sum.macs.reset();
  sum.parameters += row.parameters;
  sum.remembered = sum.remembered || row.remembered;
  if (const auto& whole = whole_of(row)) folded.joules.push_back(whole->energy.joules());
}

model::FoldedLayers spread_of(const Folded& folded, std::size_t count) {
  model::FoldedLayers out{count, std::nullopt};
  if (folded.joules.size() != count) return out;
  double mean = 0;
  for (const double joules : folded.joules) mean += joules / static_cast<double>(count);
  double squares = 0;
  for (const double joules : folded.joules) squares += (joules - mean) * (joules - mean);
  const auto [least, greatest] = std::minmax_element(folded.joules.begin(), folded.joules.end());
  out.joules = {mean, std::sqrt(squares / static_cast<double>(count - 1)), *least, *greatest};
  return out;
}

std::string spread_text(const model::FoldedLayers& folded) {
  std::string text = fmt::format("{} layers", folded.count);
  if (!folded.joules) return text;
  const auto& [mean, deviation, least, greatest] = *folded.joules;
  text += fmt::format(", mean {}", energy_text(Energy::joules(mean)));
  if (mean > 0) text += fmt::format(", deviation {}", percent_text(deviation / mean));
  return text;
}

}  // namespace

std::string folded_name(std::string_view name) {
  std::string folded;
  for (const std::string_view part : split(name, '.')) {
    const bool is_number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    folded += folded.empty() ? "" : ".";
    folded += is_number ? "*" : part;
  }
  return folded;
}

model::ActivityProfile fold_layers(const model::ActivityProfile& profile) {
  model::ActivityProfile out = profile;
  std::vector<Folded> rows;
  std::vector<std::size_t> counts;
  std::vector<std::uint32_t> place;  // of each row of the profile
  std::map<Key, std::uint32_t> known;
  for (std::size_t i = 0; i < profile.by_layer.size(); ++i) {
    const ActivityRow& row = profile.by_layer[i];
    const std::uint32_t parent = row.parent < i ? place[row.parent] : model::kNone;
    const auto [found, is_new] =
        known.try_emplace({parent, folded_name(row.name), row.detail, row.parameters},
                          static_cast<std::uint32_t>(rows.size()));
    place.push_back(found->second);
    if (!is_new) {
      add(rows[found->second], row);
      rows[found->second].row.name = common_name(rows[found->second].row.name, row.name);
      ++counts[found->second];
      continue;
    }
    rows.push_back({row, {}});
    rows.back().row.parent = parent;
    counts.push_back(1);
    if (const auto& whole = whole_of(row)) rows.back().joules.push_back(whole->energy.joules());
  }
  out.by_layer.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ActivityRow& row = rows[i].row;
    if (counts[i] > 1) {
      row.folded = spread_of(rows[i], counts[i]);
      row.detail = spread_text(*row.folded) + (row.detail.empty() ? "" : "; " + row.detail);
      row.group = model::kNone;
      row.group_energy.reset();
    }
    out.by_layer.push_back(std::move(row));
  }
  return out;
}

}  // namespace jouleprof::report
