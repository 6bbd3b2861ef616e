#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "importers/import.h"
#include "importers/row_log.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

using model::WallLog;
using nlohmann::json;

constexpr double kMostWatts = 1e7;
constexpr std::size_t kDeepest = 16;

// A column's name without its unit, and the watts of one. No watts: the unit is of something else.
struct PowerName {
  std::string name;
  std::optional<double> watts = 1.0;
};
PowerName power_name(std::string_view raw) {
  const auto [name, unit, text] = split_name(raw);
  if (unit.empty() && text.empty()) return {plain_name(name)};
  return {plain_name(name), unit_scale(unit, "W")};
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, const std::string& column)
      : text_(text), column_(column) {
    log_.file = file;
  }

  Result<WallLog> read() {
    Result<void> done;
    if (text_.find("Instantaneous power reading") != text_.npos) {
      done = read_ipmi();
    } else if (trim(text_).starts_with('{')) {
      done = read_json();
    } else {
      done = read_csv();
    }
    if (!done) return forward_error(done);
    return finish();
  }

 private:
  // Of one column of power.
  struct Readings {
    std::vector<WallLog::Reading> good;
    BadRows bad;
  };

  static void add(Readings& to, std::size_t line, RealTime at, double watts) {
    if (!std::isfinite(watts) || watts < 0 || watts > kMostWatts) {
      to.bad.add(line, fmt::format("{} W is no power of a machine", watts));
    } else {
      to.good.push_back({at, watts});
    }
  }

  // Each reading is a block of lines; one with the time may come before it.
  Result<void> read_ipmi() {
    log_.format = "ipmi";
    std::optional<RealTime> before;
    std::optional<double> watts;
    bool by_bmc = false;
    for (Lines lines(text_); lines.next();) {
      const auto line = trim(lines.text());
      const auto colon = line.find(':');
      const auto value = colon == line.npos ? std::string_view() : trim(line.substr(colon + 1));
      if (line.starts_with("Instantaneous power reading")) {
        watts = parse_number(value.substr(0, value.find(' ')));
        if (!watts) readings_.bad.add(lines.number(), "no watts in the reading");
        if (!watts || !before) continue;
        add(readings_, lines.number(), *before, *watts);
        before.reset();
        watts.reset();
      } else if (line.starts_with("IPMI timestamp")) {
        if (!watts) continue;  // it had a time before
        const auto at = parse_utc_time(value);
        if (at) {
          add(readings_, lines.number(), *at, *watts);
          by_bmc = true;
        } else {
          readings_.bad.add(lines.number(), fmt::format("{} is no time", show(value)));
        }
        watts.reset();
      } else if (const auto at = parse_utc_time(line)) {
        before = at;
      }
    }
    if (by_bmc) {
      log_.warnings.push_back(
          "times are of the BMC's clock, in whole seconds, taken as UTC; write `date +%s.%N` "
          "before "
          "each reading for better ones");
    }
    return {};
  }

  Result<void> read_json() {
    log_.format = "redfish";
    for (Lines lines(text_); lines.next();) {
      const auto line = trim(lines.text());
      if (line.empty()) continue;
      const json object = json_value(line);
      if (object.is_discarded()) {
        if (!lines.ended()) {
          log_.warnings.push_back(cut_off_warning(log_.file, lines.number()));
          break;
        }
        readings_.bad.add(lines.number(), "no JSON; one object a line is needed");
        continue;
      }
      const auto watts = find_watts(object, 0);
      if (!watts) continue;  // the BMC had none
      const auto at = find_time(object);
      if (at) {
        add(readings_, lines.number(), *at, *watts);
      } else {
        readings_.bad.add(
            lines.number(),
            "no time: give the object a key 'time' with seconds since 1970 or ISO 8601");
      }
    }
    return {};
  }

  // Redfish's resources Power and EnvironmentMetrics.
  static std::optional<double> find_watts(const json& value, std::size_t depth) {
    if (depth > kDeepest) return std::nullopt;
    if (value.is_object()) {
      if (const auto found = value.find("PowerConsumedWatts");
          found != value.end() && found->is_number()) {
        return found->get<double>();
      }
      if (const auto found = value.find("PowerWatts"); found != value.end()) {
        if (found->is_number()) return found->get<double>();
        if (found->is_object() && found->contains("Reading") && (*found)["Reading"].is_number()) {
          return (*found)["Reading"].get<double>();
        }
      }
    }
    if (!value.is_structured()) return std::nullopt;
    for (const auto& inner : value) {
      if (const auto found = find_watts(inner, depth + 1)) return found;
    }
    return std::nullopt;
  }

  static std::optional<RealTime> find_time(const json& object) {
    for (const auto* key : {"time", "timestamp", "Timestamp", "@timestamp", "date", "DateTime"}) {
      const auto found = object.find(key);
      if (found == object.end()) continue;
      if (found->is_string()) return parse_utc_time(found->get<std::string>());
      if (found->is_number()) return parse_utc_time(found->dump());
    }
    return std::nullopt;
  }

  Result<void> read_csv() {
    Lines lines(text_);
    std::vector<std::string> head;
    std::optional<std::size_t> time;
    // Lines of the meter's program may come before the header.
    while (!time && lines.next()) {
      auto fields = split_csv(trim(lines.text()));
      if (!fields) continue;
      head = std::move(*fields);
      time = time_column(head);
    }
    if (!time) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} is not recognised: a log of wattmetre-read, of `ipmitool dcmi "
                              "power reading`, of Redfish as JSON lines, or a CSV file with a "
                              "column 'time' is needed",
                              log_.file));
    }
    const auto frame = find(head, [](const std::string& name) { return name == "frameisok"; });
    log_.format = frame ? "wattmetre-read" : "csv";
    const auto candidates = power_columns(head);
    if (candidates.empty()) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} has no column of power{} in W, kW or mW; it has: {}", log_.file,
                              column_.empty() ? "" : " '" + column_ + "'", fmt::join(head, ", ")));
    }
    std::vector<double> scales;
    for (const std::size_t i : candidates) {
      const auto watts = power_name(head[i]).watts;
      if (!watts) {
        return fail(Errc::kInvalidArgument,
                    fmt::format("{}: the unit of {} is of no power; name a column in W, kW or mW "
                                "with --wall-column",
                                log_.file, show(head[i])));
      }
      scales.push_back(*watts);
    }
    std::vector<Readings> readings(candidates.size());
    const auto leave_out = [&](std::size_t line, const std::string& why) {
      for (auto& column : readings) column.bad.add(line, why);
    };
    LastLine last;
    while (lines.next()) {
      const auto line = trim(lines.text());
      if (line.empty()) continue;
      const auto fields = split_csv(line);
      const std::string last_cell = fields && !fields->empty() ? fields->back() : std::string();
      if (!lines.ended() &&
          (!fields || fields->size() < head.size() || last.may_be_cut(last_cell))) {
        log_.warnings.push_back(cut_off_warning(log_.file, lines.number()));
        break;
      }
      last.note(last_cell);
      if (!fields || fields->size() <= *time) {
        leave_out(lines.number(), "fields are missing");
        continue;
      }
      if (frame && fields->size() > *frame && lower_case(trim((*fields)[*frame])) != "true")
        continue;
      const auto at = parse_utc_time((*fields)[*time]);
      if (!at) {
        leave_out(lines.number(), fmt::format("{} is no time", show((*fields)[*time])));
        continue;
      }
      for (std::size_t c = 0; c < candidates.size(); ++c) {
        const auto text =
            candidates[c] < fields->size() ? trim((*fields)[candidates[c]]) : std::string_view();
        if (text.empty()) continue;
        if (const auto watts = parse_number(text)) {
          add(readings[c], lines.number(), *at, *watts * scales[c]);
        } else {
          readings[c].bad.add(lines.number(), fmt::format("{} is no power", show(text)));
        }
      }
    }
    return choose(head, candidates, readings);
  }

  static std::optional<std::size_t> find(const std::vector<std::string>& head,
                                         const std::function<bool(const std::string&)>& fits) {
    for (std::size_t i = 0; i < head.size(); ++i) {
      if (fits(plain_name(head[i]))) return i;
    }
    return std::nullopt;
  }

  static std::optional<std::size_t> time_column(const std::vector<std::string>& head) {
    return find(head, is_time_name);
  }

  std::vector<std::size_t> power_columns(const std::vector<std::string>& head) const {
    std::vector<std::size_t> found;
    std::vector<std::size_t> like_power;  // "total_watts", "node power"
    for (std::size_t i = 0; i < head.size(); ++i) {
      const auto [name, watts] = power_name(head[i]);
      const bool is_named = !column_.empty() && plain_name(head[i]) == plain_name(column_);
      if (is_named) found.push_back(i);
      if (!watts || !column_.empty()) continue;
      const bool is_like = name.find("watt") != name.npos || name.find("power") != name.npos;
      if (is_like && name.find("limit") == name.npos && name.find("cap") == name.npos) {
        like_power.push_back(i);
      }
      const bool is_power = name.starts_with("activepow") || name == "power" || name == "watts" ||
                            name == "w" || name == "watt";
      if (is_power) found.push_back(i);
    }
    if (found.empty() && column_.empty() && like_power.size() == 1) return like_power;
    return found;
  }

  Result<void> choose(const std::vector<std::string>& head,
                      const std::vector<std::size_t>& candidates, std::vector<Readings>& readings) {
    std::vector<std::size_t> used;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (std::ranges::any_of(readings[c].good, [](const auto& r) { return r.watts > 0; })) {
        used.push_back(c);
      }
    }
    if (candidates.size() > 1 && used.size() != 1) {
      std::vector<std::string> names;
      for (const auto c : candidates) names.push_back(head[c]);
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} has several columns of power: name one with --wall-column: {}",
                              log_.file, fmt::join(names, ", ")));
    }
    const std::size_t chosen = candidates.size() == 1 ? 0 : used.front();
    log_.column = std::string(trim(head[candidates[chosen]]));
    if (log_.column.starts_with('#')) log_.column.erase(0, 1);
    readings_ = std::move(readings[chosen]);
    return {};
  }

  Result<WallLog> finish() {
    auto& readings = log_.readings = std::move(readings_.good);
    if (auto right = readings_.bad.check({log_.file, {}}, readings.size()); !right) {
      return forward_error(right);
    }
    for (const auto& warning : readings_.bad.warnings()) {
      log_.warnings.push_back(fmt::format("{}: {}", log_.file, warning));
    }
    std::ranges::stable_sort(readings, [](const auto& a, const auto& b) { return a.at < b.at; });
    // A BMC repeats its last value under the same time.
    readings.erase(std::unique(readings.begin(), readings.end(),
                               [](const auto& a, const auto& b) { return a.at == b.at; }),
                   readings.end());
    if (readings.size() < 2) {
      return fail(Errc::kUnavailable,
                  fmt::format("{} has fewer than two readings of power", log_.file));
    }
    return std::move(log_);
  }

  std::string_view text_;
  const std::string& column_;
  WallLog log_;
  Readings readings_;
};

}  // namespace

Result<WallLog> read_wall_log(std::string_view text, const std::string& file,
                              const std::string& column) {
  return Reader(text, file, column).read();
}

}  // namespace jouleprof::importers
