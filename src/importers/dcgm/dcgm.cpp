// What `dcgmi dmon -e 155,156,...` prints: a header `#Entity POWER TOTEC ...`, a line of units, and
// rows `GPU 0  120.5  1234567 ...`, one an entity and look. The header comes again from time to
// time. There are no time stamps. POWER is in W, TOTEC the energy counter in mJ.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/device_log.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "model/device/gauge_names.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr Duration kDefaultInterval = std::chrono::seconds{1};
constexpr Duration kAveragingWindow = std::chrono::seconds{1};
constexpr double kMebibyte = 1024.0 * 1024.0;

struct Field {
  std::string_view name;
  std::string_view unit;
  model::SensorKind kind{};
  std::string_view sensor;
  double scale = 1;
};

constexpr std::array<Field, 9> kFields{
    {{"POWER", "W", kPowerAverage, "DCGM_FI_DEV_POWER_USAGE"},
     {"TOTEC", "mJ", kEnergyCounter, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e-3},
     {"TMPTR", "C", kGauge, gauge::kTemperature},
     {"MMTMP", "C", kGauge, gauge::kMemoryTemperature},
     {"SMCLK", "MHz", kGauge, gauge::kSmClock, 1e6},
     {"MMCLK", "MHz", kGauge, gauge::kMemoryClock, 1e6},
     {"GPUTL", "%", kGauge, gauge::kGpuUtilisation, 0.01},
     {"MCUTL", "%", kGauge, gauge::kMemoryUtilisation, 0.01},
     {"FBUSD", "MB", kGauge, gauge::kMemoryUsed, kMebibyte}}};

// The names of a header's columns after "#Entity"; nothing for any other line.
std::optional<std::vector<std::string_view>> parse_header(std::string_view line) {
  auto words = split_blanks(line);
  if (words.size() > 1 && words[0] == "#") words.erase(words.begin());
  if (words.size() < 2 || (words[0] != "#Entity" && words[0] != "Entity")) return std::nullopt;
  words.erase(words.begin());
  return words;
}

class Import {
 public:
  Import(const SourceText& source, const ImportOptions& options)
      : source_(source), options_(options), lines_(source.text), builder_("dcgmi") {}

  Result<model::Recording> run() {
    while (lines_.next()) {
      if (auto taken = take_line(trim(lines_.text())); !taken) return forward_error(taken);
    }
    if (log_.rows.empty()) {
      return fail(Errc::kUnavailable, fmt::format("{}: no row of a GPU in it", source_.path));
    }
    const bool any = std::any_of(log_.columns.begin(), log_.columns.end(),
                                 [](const LogColumn& c) { return c.kind != kGauge; });
    if (!any) {
      return fail(
          Errc::kUnavailable,
          fmt::format("{}: it has neither POWER nor TOTEC; log with 'dcgmi dmon -e 155,156'",
                      source_.path));
    }
    const Duration interval = options_.interval.value_or(kDefaultInterval);
    std::vector<std::int64_t> looks(log_.devices.size());
    for (LogRow& row : log_.rows) row.stamp = interval * looks[row.device]++;
    warn(interval);
    const Layout layout = add_log(log_, builder_, kAveragingWindow, "the log has no power of it");
    builder_.set_clock(layout, nullptr);
    return std::move(builder_).finish(source_.path, layout.times.front(), layout.times.back());
  }

 private:
  Result<void> take_line(std::string_view line) {
    if (line.empty()) return {};
    if (const auto header = parse_header(line)) return set_columns(*header);
    if (header_.empty()) return {};  // before the log
    if (!lines_.ended() && !log_.rows.empty()) {
      builder_.set_cut_off(cut_off_warning(source_.path, lines_.number()));
      return {};
    }
    const auto words = split_blanks(line);
    if (words[0] == "ID" || words[0] == "Id" || words[0] == "#") return check_units(words);
    return take_row(words);
  }

  Result<void> set_columns(const std::vector<std::string_view>& names) {
    if (header_.empty()) {
      header_ = names;
      for (const std::string_view name : names) {
        const auto known = std::find_if(kFields.begin(), kFields.end(),
                                        [&](const Field& field) { return field.name == name; });
        fields_.push_back(known == kFields.end() ? nullptr : &*known);
        if (known == kFields.end()) {
          left_out_.emplace_back(name);
          continue;
        }
        LogColumn column{known->kind, std::string(known->sensor), known->scale};
        if (known->kind == kPowerAverage) column.window = kAveragingWindow;
        log_.columns.push_back(std::move(column));
      }
    } else if (header_ != names) {
      return fail_at(source_, lines_.number(),
                     "the header has other columns than the one before; import the logs apart");
    }
    return {};
  }

  // Most columns have no unit, so that only units that are there can be checked.
  Result<void> check_units(const std::vector<std::string_view>& words) {
    std::vector<std::string_view> expected;
    for (const Field* field : fields_) {
      if (field && (field->kind != kGauge)) expected.push_back(field->unit);
    }
    for (const std::string_view unit : expected) {
      if (std::find(words.begin(), words.end(), unit) == words.end()) {
        return fail_at(source_, lines_.number(),
                       fmt::format("the units have no {}; POWER is in W and TOTEC in mJ", unit));
      }
    }
    return {};
  }

  Result<void> take_row(std::vector<std::string_view> words) {
    if (words[0] != "GPU") {  // "GPU-I 3" is an instance of a GPU; "Switch", "CPU", ...
      ++other_entities_[std::string(words[0])];
      return {};
    }
    const auto index = words.size() > 1 ? parse_integer(words[1]) : std::nullopt;
    if (!index || *index < 0 || *index > 65535) {
      return fail_at(source_, lines_.number(), "a row of a GPU without its number");
    }
    words.erase(words.begin(), words.begin() + 2);
    join_name(words);
    if (words.size() != fields_.size()) {
      return fail_at(source_, lines_.number(),
                     fmt::format("{} values under a header of {}", words.size(), fields_.size()));
    }
    const auto [place, is_new] = places_.try_emplace(*index, log_.devices.size());
    if (is_new) {
      log_.devices.push_back(
          {model::DomainKind::kGpu, fmt::format("gpu{}", *index), fmt::format("GPU {}", *index)});
    }
    LogRow row;
    row.device = place->second;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!fields_[i]) continue;
      const auto number = parse_number(words[i]);
      if (!number && words[i] != "N/A" && words[i] != "-") {
        return fail_at(source_, lines_.number(),
                       fmt::format("{} is {}, not a number", fields_[i]->name, show(words[i])));
      }
      row.values.push_back(number);
    }
    log_.rows.push_back(std::move(row));
    return {};
  }

  // A product's name has blanks; no other value has.
  void join_name(std::vector<std::string_view>& words) const {
    const auto name = std::find(header_.begin(), header_.end(), "DVNAM");
    if (name == header_.end() || words.size() <= header_.size()) return;
    const auto first = words.begin() + (name - header_.begin());
    words.erase(first, first + static_cast<std::ptrdiff_t>(words.size() - header_.size()));
  }

  void warn(Duration interval) {
    builder_.warn(fmt::format(
        "the log has no time stamps: its rows are taken to be {} s apart{}", seconds(interval),
        options_.interval ? "" : "; give --interval if dcgmi ran with another -d"));
    if (!left_out_.empty()) {
      builder_.warn(fmt::format("{} column{} left out: {}", left_out_.size(),
                                left_out_.size() == 1 ? "" : "s",
                                show(fmt::format("{}", fmt::join(left_out_, ", ")), 200)));
    }
    for (const auto& [entity, rows] : other_entities_) {
      builder_.warn(fmt::format("{} row{} of {} left out: the power of whole GPUs is imported",
                                rows, rows == 1 ? "" : "s", show(entity)));
    }
  }

  const SourceText& source_;
  const ImportOptions& options_;
  Lines lines_;
  RecordingBuilder builder_;
  std::vector<std::string_view> header_;  // into the source's text
  std::vector<const Field*> fields_;      // null: left out
  std::vector<std::string> left_out_;
  std::map<std::string, std::size_t> other_entities_;
  std::map<std::int64_t, std::size_t> places_;
  DeviceLog log_;
};

bool recognises_dcgm(std::string_view text) {
  for (Lines lines(text); lines.next();) {
    if (parse_header(trim(lines.text()))) return true;
    if (lines.number() > 20) return false;
  }
  return false;
}

Result<model::Recording> read_dcgm(std::span<const SourceText> sources,
                                   const ImportOptions& options) {
  return Import(sources.front(), options).run();
}

}  // namespace

const Importer kDcgmImporter{
    {"dcgmi", "what 'dcgmi dmon -e 155,156,...' prints"}, false, recognises_dcgm, read_dcgm};

}  // namespace jouleprof::importers
