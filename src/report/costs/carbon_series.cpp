#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "report/costs/costs.h"

namespace jouleprof::report {
namespace {

// "2026-11-22 02:00:00", "2026-11-22T02:00:00Z", without seconds as well; in UTC.
std::optional<RealTime> parse_utc(std::string_view text) {
  const std::string word(trim(text));
  std::tm time{};
  int used = 0;
  char between = 0;
  if (std::sscanf(word.c_str(), "%4d-%2d-%2d%c%2d:%2d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &between, &time.tm_hour, &time.tm_min, &used) != 6 ||
      (between != ' ' && between != 'T')) {
    return std::nullopt;
  }
  std::string_view rest = std::string_view(word).substr(static_cast<std::size_t>(used));
  int more = 0;
  if (std::sscanf(std::string(rest).c_str(), ":%2d%n", &time.tm_sec, &more) == 1) {
    rest.remove_prefix(static_cast<std::size_t>(more));
  }
  if (rest.starts_with(".000")) rest.remove_prefix(4);
  if (!rest.empty() && rest != "Z" && rest != "+00:00") return std::nullopt;
  if (time.tm_mon < 1 || time.tm_mon > 12 || time.tm_mday < 1 || time.tm_mday > 31 ||
      time.tm_hour > 23 || time.tm_min > 59 || time.tm_sec > 60) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return RealTime{std::chrono::seconds{::timegm(&time)}};
}

std::optional<std::size_t> column_with(const std::vector<std::string>& head,
                                       std::initializer_list<std::string_view> words) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto has = [&](std::string_view word) { return head[i].find(word) != std::string::npos; };
    if (std::all_of(words.begin(), words.end(), has)) return i;
  }
  return std::nullopt;
}

bool is_true(std::string_view word) { return word == "true" || word == "True" || word == "1"; }

}  // namespace

Result<CarbonSeries> parse_carbon_series(std::string_view text, std::string file) {
  CarbonSeries series;
  series.file = std::move(file);
  const auto damaged = [&](std::size_t line, const std::string& what) {
    return fail(Errc::kCorrupt, fmt::format("{}:{}: {}", series.file, line, what));
  };
  const auto lines = split(text, '\n');
  const auto head = lines.empty() ? Result<std::vector<std::string>>{} : split_csv(trim(lines[0]));
  if (!head) return damaged(1, head.error().message);
  const auto time = column_with(*head, {"Datetime"});
  auto grams = column_with(*head, {"arbon intensity", "ife cycle"});
  series.column = "life cycle";
  if (!grams) {
    grams = column_with(*head, {"arbon intensity"});
    series.column = grams && (*head)[*grams].find("direct") != std::string::npos ? "direct" : "";
  }
  if (!time || !grams) {
    return damaged(1,
                   "the header has no columns 'Datetime (UTC)' and 'Carbon intensity ...', as "
                   "Electricity Maps exports them");
  }
  const auto zone = column_with(*head, {"Zone"});
  const auto estimated = column_with(*head, {"stimated"});
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const auto fields = split_csv(trim(lines[i]));
    if (!fields) return damaged(i + 1, fields.error().message);
    if (fields->size() <= std::max(*time, *grams)) return damaged(i + 1, "fields are missing");
    const auto begin = parse_utc((*fields)[*time]);
    if (!begin) return damaged(i + 1, fmt::format("'{}' is not a time in UTC", (*fields)[*time]));
    if (trim((*fields)[*grams]).empty()) continue;  // no value for this time
    const auto value = parse_number(trim((*fields)[*grams]));
    if (!value || *value < 0) {
      return damaged(i + 1, fmt::format("'{}' is not a carbon intensity", (*fields)[*grams]));
    }
    if (zone && *zone < fields->size()) {
      if (!series.zone.empty() && series.zone != (*fields)[*zone]) {
        return damaged(i + 1, "the file has several zones; give a file of one");
      }
      series.zone = (*fields)[*zone];
    }
    const bool is_estimated =
        estimated && *estimated < fields->size() && is_true((*fields)[*estimated]);
    series.steps.push_back({*begin, *value, is_estimated});
  }
  if (series.steps.empty()) return damaged(1, "the file has no carbon intensity");
  std::sort(series.steps.begin(), series.steps.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  // Of a single row: an hour. A longer pause between rows is a missing value.
  std::optional<Duration> shortest;
  for (std::size_t i = 1; i < series.steps.size(); ++i) {
    const Duration length = series.steps[i].begin - series.steps[i - 1].begin;
    if (length <= Duration{}) return damaged(1, "two rows have the same time");
    shortest = std::min(shortest.value_or(length), length);
  }
  series.length = shortest.value_or(std::chrono::hours{1});
  return series;
}

}  // namespace jouleprof::report
