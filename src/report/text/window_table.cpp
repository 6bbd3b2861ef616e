#include <fmt/format.h>

#include <algorithm>

#include "model/window_mean.h"
#include "model/window_sum.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using model::WindowEnergy;
using model::WindowGroup;

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
      const auto has_figure = [&](const WindowGroup& g) { return mean_of_any(g.energies[i]); };
      const auto& groups = c_.profile.windows;
      if (std::any_of(groups.begin(), groups.end(), has_figure)) domains_.push_back(i);
    }
    Table table({"window", "<device", "count", "time each", "energy each", "95 %", "median",
                 "<quartiles", "dynamic", "total", "<"});
    for (const WindowGroup& group : c_.profile.windows) add(table, group);
    table_ = table.lines(c_.width, c_.options.colour);
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
    std::string text;
    for (const std::string& line : table_) text += line + '\n';
    return text;
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
                 {interval ? c_.plus_minus(interval->error, interval->energy) : "-"},
                 {q ? energy_text(q->median) : "-"},
                 {q ? energy_text(q->lower) + " to " + energy_text(q->upper) : "-"},
                 {text(dynamic)},
                 {has_sum ? text(total) : "-"},
                 {group.imported ? "imported"
                  : e.energy     ? provenance_word(e.energy->provenance)
                                 : "unavailable",
                  style}});
      if (!is_of_all && !e.reason.empty() && !group.imported) {
        table.add_text({"", Style::kAttention},
                       {fmt::format("{}: {} of {} without a figure: {}", c_.labels[d],
                                    group.count - e.count, group.count, c_.safe(e.reason)),
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

std::string windows_to_text(const model::Profile& profile, const TextOptions& options) {
  return Writer(TextContext(profile, options)).write();
}

}  // namespace jouleprof::report
