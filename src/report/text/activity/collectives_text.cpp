#include <fmt/format.h>

#include <algorithm>

#include "report/cells.h"
#include "report/format/collectives.h"
#include "report/quantity.h"
#include "report/text/activity/activity_context.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

using model::CollectiveProfile;
using model::CollectiveRank;
using model::CollectiveTimes;
using model::Measurement;

class Writer {
 public:
  Writer(const CollectiveProfile& profile, const TextOptions& text)
      : profile_(profile),
        text_(text),
        width_(static_cast<std::size_t>(std::clamp(text.width, 60, 160))) {}

  std::string whole() {
    rows(true);
    lines_.emplace_back();
    straggler();
    unsplit();
    if (profile_.has_split()) {
      note("", fmt::format("estimated: the active energy of a rank's kernels, divided by the time "
                           "until the last rank began and after it; ends of one collective differ "
                           "by {} in the median, which is in the intervals",
                           duration_text(*profile_.end_spread)));
    }
    for (const auto& problem : profile_.problems) note("warning", problem, Style::kAttention);
    return joined();
  }

  std::string brief() {
    rows(false);
    straggler();
    return joined();
  }

 private:
  std::string joined() const {
    std::string all;
    for (const auto& line : lines_) all += line + '\n';
    return all;
  }

  void note(const std::string& label, const std::string& words, Style style = Style::kDim) {
    Table table({""});
    table.add_text({label, style}, {printable(words, text_.ascii)}, 4);
    const Lines made = table.lines(width_, text_.colour);
    lines_.insert(lines_.end(), made.begin() + 1, made.end());
  }

  std::string error_of(const std::optional<Measurement>& m) const {
    if (!m || m->energy <= Energy{}) return "-";
    return (text_.ascii ? "+-" : "\xC2\xB1") + percent_text(m->error.joules() / m->energy.joules());
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
      row(table, printable(rank_name(rank) + ", " + rank.device, text_.ascii), rank, Style::kBold);
      if (!kinds) continue;
      for (const auto& kind : rank.kinds) {
        row(table, printable("  " + kind.name, text_.ascii), kind, Style::kPlain);
      }
    }
    for (auto& line : table.lines(width_, text_.colour)) lines_.push_back(std::move(line));
  }

  void straggler() {
    const CollectiveRank* most = profile_.straggler();
    if (most == nullptr) return;
    note("slowest",
         fmt::format("{} came last in {} of {} collectives: the others waited {} for it{}",
                     rank_name(*most), count_text(most->last), count_text(most->matched),
                     duration_text(most->waited_for),
                     most->waited_for_energy ? ", " + energy_text(*most->waited_for_energy) : ""),
         Style::kBold);
  }

  void unsplit() {
    for (const auto& rank : profile_.ranks) {
      if (rank.calls == rank.matched) continue;
      note("not split",
           fmt::format("{}: {} of {} calls, {}{}; operations that need not wait for all ranks, or "
                       "that were not matched",
                       rank_name(rank), count_text(rank.calls - rank.matched),
                       count_text(rank.calls), duration_text(rank.unsplit),
                       rank.unsplit_energy ? ", " + energy_text(rank.unsplit_energy->energy) : ""));
    }
  }

  const CollectiveProfile& profile_;
  const TextOptions& text_;
  std::size_t width_;
  Lines lines_;
};

}  // namespace

std::string collectives_to_text(const CollectiveProfile& profile, const TextOptions& text) {
  return Writer(profile, text).whole();
}

std::string collectives_to_brief_text(const CollectiveProfile& profile, const TextOptions& text) {
  return profile.has_split() ? Writer(profile, text).brief() : "";
}

}  // namespace jouleprof::report
