#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "report/cells.h"
#include "report/format/format.h"
#include "report/quantity.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using model::ActivityProfile;
using model::Measurement;

constexpr std::size_t kMostWarnings = 8;
constexpr double kResolved = 0.95;   // of the kernels' energy: nothing more is to be said
constexpr double kMostOfASum = 0.5;  // error of the sum of a group that is worth a word

// Rounded down, so that a good fit does not pass for a perfect one.
std::string explained_text(double ratio) {
  if (ratio < 0.99) return percent_text(std::max(ratio, 0.0));
  return fmt::format("{:.1f} %", std::floor(std::min(ratio, 1.0) * 1000) / 10);
}

class Section {
 public:
  Section(const ActivityProfile& profile, const ActivityOptions& options, const TextOptions& text)
      : c_(profile, options, text) {}

  std::string whole() {
    head();
    rows();
    lines_.emplace_back();
    balance();
    foot();
    return joined_lines(lines_);
  }

  std::string brief() {
    rows();
    return joined_lines(lines_);
  }

 private:
  void head() {
    const Measurement& m = c_.profile.measured;
    if (m.provenance == model::Provenance::kSimulated) c_.note_simulated(lines_);
    if (c_.profile.domain.kind == model::DomainKind::kGpu) resolved();
    std::string device = c_.safe(c_.profile.domain.device);
    if (!c_.profile.domain.name.empty()) device += ", " + c_.safe(c_.profile.domain.name);
    c_.note(lines_, "device", Style::kDim, device, 1, Style::kBold);
    std::string span = duration_text(c_.profile.length());
    if (c_.profile.launches > 0) span += ", " + count_text(c_.profile.launches) + " launches";
    if (c_.profile.memsets_left_out > 0) {
      span += fmt::format("; without {} small memsets", count_text(c_.profile.memsets_left_out));
    }
    c_.note(lines_, "traced", Style::kDim, span, 1);
    c_.note(lines_, "measured", Style::kDim,
            fmt::format("{}, {}; by {}: {}", c_.with_error(m), provenance_word(m.provenance),
                        to_string(c_.options.by),
                        c_.profile.method.empty() ? "no method" : c_.safe(c_.profile.method)),
            2, style_of(m.provenance));
    if (c_.profile.replay) {
      c_.note(lines_, "replay", Style::kDim,
              fmt::format("{} in {} of isolated re-runs, not included in any figure here",
                          c_.with_error(*c_.profile.replay), duration_text(c_.profile.replay_time)),
              2);
    }
    if (c_.profile.rows > 0) {
      c_.note(lines_, "fit", Style::kDim,
              fmt::format("explains {} of the variance of {} measured power values",
                          explained_text(c_.profile.explained), c_.profile.rows),
              2);
    }
    const bool is_gpu = c_.profile.domain.kind == model::DomainKind::kGpu;
    c_.note(lines_, "rows", Style::kDim,
            is_gpu ? "active energy and power: above what the device draws at rest and held"
            : is_idle_known() ? "active energy and power: above what the device draws at rest"
                              : "all energy and power: that at rest is unknown, and included",
            1);
    lines_.emplace_back();
  }

  // Where much is not resolvable: how much is, which sums are, and what would resolve the rest.
  void resolved() {
    double all = 0;
    double known = 0;
    std::map<std::uint32_t, std::pair<const Measurement*, std::size_t>> groups;
    for (const auto& row : rows_of(c_.profile, c_.options.by)) {
      if (!row.energy) continue;
      const double joules = std::max(row.energy->energy.joules(), 0.0);
      all += joules;
      if (row.resolvable) known += joules;
      if (row.group == model::kNone || !row.group_energy) continue;
      auto& group = groups[row.group];
      group.first = &*row.group_energy;
      ++group.second;
    }
    if (all <= 0 || known >= kResolved * all) return;
    std::string sums;
    for (const auto& [id, group] : groups) {
      if (group.first->error.joules() > kMostOfASum * group.first->energy.joules()) continue;
      sums += fmt::format("{}{} ({} kernels)", sums.empty() ? "" : ", ",
                          c_.with_error(*group.first), group.second);
    }
    std::string text = fmt::format("{} of the kernels' energy by {}", percent_text(known / all),
                                   to_string(c_.options.by));
    if (!sums.empty()) text += "; sums of kernels that ran together: " + sums;
    text += c_.profile.replay ? "; warnings say why re-runs did not resolve the rest"
            : c_.options.imported
                ? ". To resolve the rest, record the program itself: jouleprof run "
                  "--kernels --replay -- COMMAND"
                : ". To resolve the rest, run it again with --replay";
    c_.note(lines_, "resolved", Style::kDim, text, kMostWarnings, Style::kAttention);
  }

  void rows() {
    if (c_.view.lines.empty()) {
      c_.note(lines_, "", Style::kDim, no_rows(), 2);
    } else {
      const bool kernels = c_.options.by == ActivityBy::kKernel;
      append(lines_, kernels ? kernel_lines(c_) : part_lines(c_));
    }
    if (c_.options.by == ActivityBy::kLayer && has_command_buffers()) {
      c_.note(lines_, "next", Style::kDim,
              "XLA does not name the layers of what it launches as command buffers: record it with "
              "XLA_FLAGS=--xla_gpu_enable_command_buffer= in the environment",
              3, Style::kAttention);
    }
    if (c_.view.left_out > 0 && !c_.view.lines.empty()) {
      lines_.push_back(paint(fmt::format("{} more; --top and --depth show them", c_.view.left_out),
                             Style::kDim, c_.text.colour));
    }
    memory();
  }

  // Most of the time is of no layer, in programs of XLA's.
  bool has_command_buffers() const {
    const auto& ranges = c_.profile.by_range;
    Duration all{};
    Duration unnamed{};
    for (const auto& stack : c_.profile.stacks) {
      all += stack.busy;
      std::uint32_t range = stack.layer == model::kNone ? stack.range : model::kNone;
      while (range != model::kNone && !ranges[range].name.starts_with(model::kXlaModule)) {
        range = ranges[range].parent;
      }
      if (range != model::kNone) unnamed += stack.busy;
    }
    return 2 * unnamed > all;
  }

  std::string no_rows() const {
    if (c_.view.left_out > 0) return "no row within --top and --depth";
    if (c_.profile.launches > 0 && c_.profile.by_kernel.empty()) {
      return fmt::format("launches traced: {}; none has an energy of its own: see below",
                         c_.profile.launches);
    }
    const auto& [by, word, rows, of_layers, why_none] = dimension(c_.options.by);
    return fmt::format("no {} was traced{}{}", word, why_none.empty() ? "" : ": ", why_none);
  }

  // Else it is within the rows.
  bool is_idle_known() const { return c_.profile.idle_power.has_value(); }

  // The power of a device that is held, rest included.
  std::string held_text(const ActivityProfile& p) const {
    if (!p.idle_power) return "";
    std::string text = number_text(p.idle_power->watts()) + " W";
    if (p.idle_error) {
      text += fmt::format(" {}{} W", c_.text.ascii ? "+-" : "\xC2\xB1",
                          number_text(p.idle_error->watts()));
    }
    return text + (p.levels.held ? " with rest" : "") + (p.idle_observed ? "" : ", not observed");
  }

  void balance() {
    const auto& p = c_.profile;
    std::vector<std::pair<const char*, std::optional<Energy>>> parts;
    if (!is_idle_known()) {
      parts.push_back({"idle", std::nullopt});
    } else if (p.levels.rest && p.levels.held) {
      parts.push_back({"rest", p.levels.rest->energy});
      parts.push_back({"held", p.levels.held->energy});
    } else {
      parts.push_back({"idle", p.idle});
    }
    const bool has_kernels = c_.options.by == ActivityBy::kKernel || p.launches > 0;
    parts.push_back({has_kernels ? "kernels" : is_idle_known() ? "active" : "rows", p.kernels});
    if (has_kernels || p.gaps != Energy{}) parts.push_back({"idle between launches", p.gaps});
    if (p.others != Energy{}) parts.push_back({"other processes", p.others});
    parts.push_back({"unattributed", p.unattributed});
    Table table({"balance", "joules", "", "<"});
    Energy sum;
    bool first = true;
    for (const auto& [name, known] : parts) {
      const Energy energy = known.value_or(Energy{});
      sum += energy;
      const Measurement part{energy, {}, {}, {}, {}, {}};
      const auto share = share_of(p, part);
      std::string remark;
      if (name == std::string_view("held") || name == std::string_view("idle")) {
        remark = known ? held_text(p) : "unknown, and within the others";
      }
      if (name == std::string_view("unattributed") && p.lost != Energy{}) {
        remark = energy_text(p.lost) + " unrecorded: process killed";
      }
      table.add({{fmt::format("{}{}", first ? "" : "+ ", name)},
                 {known ? joules_decimal(energy) : "-"},
                 {known && share ? (*share < 0 ? "-" : "") + percent_text(*share) : ""},
                 {std::move(remark), Style::kDim}});
      first = false;
    }
    const bool fits = sum == p.measured.energy;
    table.add({{"= measured", Style::kBold},
               {joules_decimal(p.measured.energy), Style::kBold},
               {""},
               {fits ? "exactly" : "differs by " + energy_text(p.measured.energy - sum),
                fits ? Style::kDim : Style::kAlarm}});
    append(lines_, table.lines(c_.width, c_.text.colour));
  }

  // What the mark means, where a row has it.
  void memory() {
    const auto& use = c_.profile.remembered;
    const bool marked = std::ranges::any_of(
        c_.view.lines, [](const auto& l) { return l.row->remembered && l.row->resolvable; });
    if (!use || !marked) return;
    const std::string first = utc_text(use->first).substr(0, 10);
    const std::string last = utc_text(use->last).substr(0, 10);
    c_.note(lines_, "*", Style::kDim,
            fmt::format("the interval rests on the power of kernels that runs on this GPU found "
                        "earlier ({}); --no-memory ignores it",
                        first == last ? first : first + " to " + last),
            2);
  }

  void foot() {
    if (c_.profile.dropped > 0) {
      c_.note(lines_, "warning", Style::kAttention,
              fmt::format(
                  "{} activity records were dropped: their energy is in other rows or unattributed",
                  count_text(c_.profile.dropped)),
              2);
    }
    const auto& warnings = c_.profile.warnings;
    for (std::size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i) {
      c_.note(lines_, "warning", Style::kAttention, c_.safe(warnings[i]), 3);
    }
    if (warnings.size() > kMostWarnings) {
      c_.note(lines_, "warning", Style::kAttention,
              fmt::format("{} more; each in --json", warnings.size() - kMostWarnings), 1);
    }
  }

  ActivityContext c_;
  Lines lines_;
};

}  // namespace

std::string activity_to_text(const std::vector<ActivityProfile>& profiles,
                             const ActivityOptions& options, const TextOptions& text) {
  // A CPU has no kernels: a section without rows is shown only where there is no other.
  const auto is_empty = [&](const auto& profile) { return rows_of(profile, options.by).empty(); };
  const bool all_empty = std::ranges::all_of(profiles, is_empty);
  std::string all;
  for (const auto& profile : profiles) {
    if (is_empty(profile) && !all_empty) continue;
    if (!all.empty()) all += '\n';
    all += Section(profile, options, text).whole();
  }
  return all;
}

std::string activity_to_brief_text(const std::vector<ActivityProfile>& profiles, std::size_t rows,
                                   const TextOptions& text) {
  ActivityOptions options;
  options.top = rows;
  std::string all;
  for (const auto& profile : profiles) {
    if (profile.by_kernel.empty()) continue;
    if (!all.empty()) all += '\n';
    if (profiles.size() > 1) all += printable(profile.domain.device, text.ascii) + ":\n";
    all += Section(profile, options, text).brief();
  }
  return all;
}

ActivityContext::ActivityContext(const model::ActivityProfile& p, const ActivityOptions& o,
                                 const TextOptions& t)
    // Wider than a profile's: names of kernels are long.
    : TextStyle(t), profile(p), options(o), view(view_of(p, o)) {}

std::string ActivityContext::with_error(const model::Measurement& m) const {
  return energy_text(m.energy) + " " + plus_minus(m);
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ' ');
  return digits;
}

const char* remembered_mark(const model::ActivityRow& row) { return row.remembered ? " *" : ""; }

namespace {

using model::CollectiveProfile;
using model::CollectiveRank;
using model::CollectiveTimes;

class Writer {
 public:
  Writer(const CollectiveProfile& profile, const TextOptions& text)
      : profile_(profile), page_(text) {}

  std::string whole() {
    rows(true);
    page_.blank();
    straggler();
    unsplit();
    if (profile_.has_split()) {
      page_.note(
          "", fmt::format("estimated: the active energy of a rank's kernels, divided by the time "
                          "until the last rank began and after it; ends of one collective differ "
                          "by {} in the median, which is in the intervals",
                          duration_text(*profile_.end_spread)));
    }
    for (const auto& problem : profile_.problems) page_.note("warning", problem, Style::kAttention);
    return page_.joined();
  }

  std::string brief() {
    rows(false);
    straggler();
    return page_.joined();
  }

 private:
  std::string error_of(const std::optional<Measurement>& m) const {
    if (!m || m->energy <= Energy{}) return "-";
    return (page_.text.ascii ? "+-" : "\xC2\xB1") +
           percent_text(m->error.joules() / m->energy.joules());
  }

  static std::string energy_of(const std::optional<Measurement>& m) {
    return m ? energy_text(m->energy) : "-";
  }

  void row(Table& table, const std::string& label, const CollectiveTimes& times, Style style) {
    const bool split = times.matched > 0;
    table.add({{label, style},
               {count_text(times.calls)},
               {split ? duration_text(times.transfer) : "-"},
               {split ? energy_of(times.transfer_energy) : "-"},
               {split ? error_of(times.transfer_energy) : "-"},
               {split ? duration_text(times.waiting) : "-"},
               {split ? energy_of(times.waiting_energy) : "-", Style::kBold},
               {split ? error_of(times.waiting_energy) : "-"}});
  }

  void rows(bool kinds) {
    Table table(
        {"collectives", "calls", "transfer", "energy", "<95 %", "waiting", "energy", "<95 %"});
    for (const auto& rank : profile_.ranks) {
      row(table, page_.safe(rank_name(rank) + ", " + rank.device), rank, Style::kBold);
      if (!kinds) continue;
      for (const auto& kind : rank.kinds) {
        row(table, page_.safe("  " + kind.name), kind, Style::kPlain);
      }
    }
    page_.add(table);
  }

  void straggler() {
    const CollectiveRank* most = profile_.straggler();
    if (most == nullptr) return;
    page_.note(
        "slowest",
        fmt::format("{} came last in {} of {} collectives: the others waited {} for it{}",
                    rank_name(*most), count_text(most->last), count_text(most->matched),
                    duration_text(most->waited_for),
                    most->waited_for_energy ? ", " + energy_text(*most->waited_for_energy) : ""),
        Style::kBold);
  }

  void unsplit() {
    for (const auto& rank : profile_.ranks) {
      if (rank.calls == rank.matched) continue;
      page_.note(
          "not split",
          fmt::format("{}: {} of {} calls, {}{}; operations that need not wait for all ranks, or "
                      "that were not matched",
                      rank_name(rank), count_text(rank.calls - rank.matched),
                      count_text(rank.calls), duration_text(rank.unsplit),
                      rank.unsplit_energy ? ", " + energy_text(rank.unsplit_energy->energy) : ""));
    }
  }

  const CollectiveProfile& profile_;
  TextPage page_;
};

}  // namespace

std::string collectives_to_text(const CollectiveProfile& profile, const TextOptions& text) {
  return Writer(profile, text).whole();
}

std::string collectives_to_brief_text(const CollectiveProfile& profile, const TextOptions& text) {
  return profile.has_split() ? Writer(profile, text).brief() : "";
}

}  // namespace jouleprof::report
