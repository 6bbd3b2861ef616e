#include "report/activity/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/record_fields.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::ActivityRow;
using model::kNone;
using model::Measurement;

constexpr ActivityDimension kDimensions[]{
    {ActivityBy::kKernel, "kernel", &model::ActivityProfile::by_kernel, false, ""},
    {ActivityBy::kLayer, "layer", &model::ActivityProfile::by_layer, true,
     "it was recorded without --layers, or the program called no module of PyTorch and no named "
     "scope of JAX"},
    {ActivityBy::kRange, "range", &model::ActivityProfile::by_range, false,
     "the program launched nothing within an NVTX range"},
    {ActivityBy::kPhase, "phase", &model::ActivityProfile::by_phase, true, ""}};
constexpr std::array<std::pair<std::string_view, ActivitySort>, 4> kSort{
    {{"energy", ActivitySort::kEnergy},
     {"time", ActivitySort::kTime},
     {"count", ActivitySort::kCount},
     {"power", ActivitySort::kPower}}};

double key_of(const ActivityRow& row, ActivitySort sort) {
  constexpr double kAbsent = -std::numeric_limits<double>::infinity();
  switch (sort) {
    case ActivitySort::kTime:
      return seconds(row.busy);
    case ActivitySort::kCount:
      return static_cast<double>(row.count > 0 ? row.count : row.launches);
    case ActivitySort::kPower: {
      const auto power = power_of(row);
      return power ? power->watts() : kAbsent;
    }
    default: {
      const auto& whole = whole_of(row);
      return whole ? whole->energy.joules() : kAbsent;
    }
  }
}

// The rows of a list as a tree. A parent that is not in the list, or would be below its own child,
// counts as none.
class Tree {
 public:
  explicit Tree(const std::vector<ActivityRow>& rows) : rows_(rows), below_(rows.size()) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t parent = rows[i].parent;
      (parent < i ? below_[parent] : roots_).push_back(i);
      busy_.push_back(rows[i].busy);
      launches_.push_back(rows[i].launches);
    }
    // A parent comes before its children.
    for (std::size_t i = rows.size(); i-- > 0;) {
      if (rows[i].parent >= i) continue;
      busy_[rows[i].parent] += busy_[i];
      launches_[rows[i].parent] += launches_[i];
    }
  }

  bool nested() const { return roots_.size() < rows_.size(); }

  void sort(ActivitySort by) {
    const auto more = [&](std::size_t a, std::size_t b) {
      return key_of(rows_[a], by) > key_of(rows_[b], by);
    };
    std::ranges::stable_sort(roots_, more);
    for (auto& list : below_) std::ranges::stable_sort(list, more);
  }

  std::vector<ActivityLine> lines() const {
    std::vector<ActivityLine> lines;
    std::vector<ActivityLine> waiting;
    const auto push = [&](const std::vector<std::size_t>& list, std::size_t depth) {
      for (auto i = list.rbegin(); i != list.rend(); ++i)
        waiting.push_back({&rows_[*i], *i, depth, busy_[*i], launches_[*i]});
    };
    for (push(roots_, 0); !waiting.empty();) {
      const ActivityLine line = waiting.back();
      waiting.pop_back();
      lines.push_back(line);
      push(below_[line.index], line.depth + 1);
    }
    return lines;
  }

 private:
  const std::vector<ActivityRow>& rows_;
  std::vector<std::size_t> roots_;
  std::vector<std::vector<std::size_t>> below_;
  std::vector<Duration> busy_;  // with the rows below
  std::vector<std::uint64_t> launches_;
};

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
  const auto [least, greatest] = std::ranges::minmax_element(folded.joules);
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

std::string frame_of(const ActivityRow& row, std::string_view detail) {
  std::string frame = row.name;
  if (!detail.empty() && detail != row.name) frame += fmt::format(" [{}]", detail);
  if (row.energy && !row.resolvable) frame += " (not resolvable)";
  return frame;
}

// Outermost first.
void add_path(const std::vector<ActivityRow>& rows, std::uint32_t row,
              std::vector<std::string>& frames) {
  const std::size_t first = frames.size();
  for (; row < rows.size(); row = rows[row].parent < row ? rows[row].parent : kNone) {
    const std::string_view detail = rows[row].detail;
    frames.push_back(frame_of(rows[row], detail.substr(0, detail.find(' '))));
  }
  std::reverse(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end());
}

}  // namespace

std::optional<ActivityBy> parse_activity_by(std::string_view word) {
  for (const auto& d : kDimensions) {
    if (d.word == word) return d.by;
  }
  return std::nullopt;
}

std::optional<ActivitySort> parse_activity_sort(std::string_view word) {
  for (const auto& [name, sort] : kSort) {
    if (name == word) return sort;
  }
  return std::nullopt;
}

std::span<const ActivityDimension> activity_dimensions() { return kDimensions; }

const ActivityDimension& dimension(ActivityBy by) {
  return kDimensions[static_cast<std::size_t>(by)];
}

std::vector<std::string> activity_sort_words() {
  std::vector<std::string> words;
  for (const auto& [name, sort] : kSort) words.emplace_back(name);
  return words;
}

std::string_view to_string(ActivityBy by) { return dimension(by).word; }

const std::vector<ActivityRow>& rows_of(const model::ActivityProfile& profile, ActivityBy by) {
  return profile.*dimension(by).rows;
}

const std::optional<model::Measurement>& whole_of(const ActivityRow& row) {
  return row.inclusive ? row.inclusive : row.energy;
}

std::optional<Power> power_of(const ActivityRow& row) {
  if (!row.energy || row.busy <= Duration{}) return std::nullopt;
  return row.energy->energy / row.busy;
}

std::optional<double> joules_per_launch(const ActivityRow& row) {
  if (!row.energy || row.launches == 0) return std::nullopt;
  return row.energy->energy.joules() / static_cast<double>(row.launches);
}

std::optional<double> joules_per_call(const ActivityRow& row) {
  const auto& whole = whole_of(row);
  if (!whole || row.count == 0) return std::nullopt;
  return whole->energy.joules() / static_cast<double>(row.count);
}

std::optional<double> share_of(const model::ActivityProfile& profile,
                               const std::optional<model::Measurement>& part) {
  if (!part || profile.measured.energy <= Energy{}) return std::nullopt;
  return part->energy.joules() / profile.measured.energy.joules();
}

ActivityView view_of(const model::ActivityProfile& profile, const ActivityOptions& options) {
  const auto& rows = rows_of(profile, options.by);
  Tree tree(rows);
  if (options.sort || options.by == ActivityBy::kKernel) {
    tree.sort(options.sort.value_or(ActivitySort::kEnergy));
  }
  ActivityView view;
  view.tree = tree.nested();
  view.lines = tree.lines();
  if (options.depth) {
    std::erase_if(view.lines, [&](const auto& line) { return line.depth >= *options.depth; });
  }
  if (options.top && *options.top < view.lines.size()) {
    std::vector<std::size_t> best;
    for (const auto& line : view.lines) best.push_back(line.index);
    // Of a flat list the first; of a tree those that matter most.
    if (view.tree) {
      const auto sort = options.sort.value_or(ActivitySort::kEnergy);
      std::ranges::stable_sort(best, [&](std::size_t a, std::size_t b) {
        return key_of(rows[a], sort) > key_of(rows[b], sort);
      });
    }
    best.resize(*options.top);
    std::vector<bool> keep(rows.size());
    for (std::size_t i : best) {
      for (; i < rows.size() && !keep[i]; i = rows[i].parent < i ? rows[i].parent : rows.size()) {
        keep[i] = true;
      }
    }
    std::erase_if(view.lines, [&](const auto& line) { return !keep[line.index]; });
  }
  view.left_out = rows.size() - view.lines.size();
  return view;
}

std::vector<EnergyStack> energy_stacks(const model::ActivityProfile& profile) {
  std::string device = profile.domain.name.empty() || profile.domain.name == profile.domain.device
                           ? profile.domain.device
                           : fmt::format("{} ({})", profile.domain.device, profile.domain.name);
  if (profile.measured.provenance != model::Provenance::kMeasured) {
    device += ", " + provenance_word(profile.measured.provenance);
  }
  std::vector<EnergyStack> out;
  for (const auto& stack : profile.stacks) {
    EnergyStack path{{device}, stack.energy, stack.busy};
    if (const auto phase = model::phase_name(stack.phase); !phase.empty()) {
      path.frames.emplace_back(phase);
    }
    add_path(profile.by_layer, stack.layer, path.frames);
    if (stack.kernel < profile.by_kernel.size()) {
      const ActivityRow& kernel = profile.by_kernel[stack.kernel];
      path.frames.push_back(frame_of(kernel, kernel.detail));
    }
    out.push_back(std::move(path));
  }
  const auto add = [&](const char* name, Energy energy) {
    if (energy != Energy{}) out.push_back({{device, name}, energy, {}});
  };
  if (profile.levels.rest && profile.levels.held) {
    add("(rest)", profile.levels.rest->energy);
    add("(held)", profile.levels.held->energy);
  } else {
    add("(idle)", profile.idle);
  }
  add("(idle between launches)", profile.gaps);
  add("(other processes)", profile.others);
  add("(unattributed)", profile.unattributed);
  return out;
}

std::string folded_name(std::string_view name) {
  std::string folded;
  for (const std::string_view part : split(name, '.')) {
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
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
