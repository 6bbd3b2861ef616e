#include "importers/csv/csv_readings.h"

#include <fmt/format.h>

#include <functional>

#include "importers/csv/csv_file.h"
#include "importers/csv/csv_units.h"
#include "importers/one_value.h"

namespace jouleprof::importers {
namespace {

Result<RealTime> instant(const CsvFile& file, const CsvColumn& column) {
  const auto t = file.integer(column);
  if (!t) return forward_error(t);
  if (*t < 0 || *t > csv::kLastUnixNanosecond) return file.fail_at(column, "no time since 1970");
  return RealTime{Duration{*t}};
}

tl::unexpected<Error> no_row(const CsvFile& file) {
  return fail(Errc::kUnavailable, fmt::format("{}: a header, and no row under it", file.path()));
}

// Calls `take` for each row.
Result<void> each_row(CsvFile& file, std::vector<std::string>& warnings,
                      const std::function<Result<void>()>& take) {
  for (;;) {
    const auto more = file.next(take);
    if (!more) return forward_error(more);
    if (!*more) return file.check_left_out(warnings);
  }
}

// As one GPU's, samples of two give the energy of one.
Result<void> check_one_gpu(const CsvFile& file, const DeviceRows& rows) {
  constexpr std::size_t kMostRows = 500'000;
  if (rows.lines.size() > kMostRows) return {};
  const auto found = find_contradiction(rows);
  if (!found || !found->is_certain) return {};
  return fail(Errc::kCorrupt, fmt::format("{}: {}", file.path(), found->text));
}

}  // namespace

Result<CsvSamples> read_csv_samples(const std::filesystem::path& path) {
  auto file = CsvFile::open(path);
  if (!file) return forward_error(file);
  auto time = file->column(csv::kTime);
  if (!time) return forward_error(time);
  auto power = file->column(csv::kPower);
  if (!power) return forward_error(power);
  if (auto ok = file->no_others(); !ok) return forward_error(ok);
  CsvSamples out;
  DeviceRows all;
  all.device = "gpu0";
  all.columns.push_back({"the power", false, false, {}});
  auto read = each_row(*file, out.warnings, [&]() -> Result<void> {
    auto at = instant(*file, *time);
    if (!at) return forward_error(at);
    const auto microwatts = file->integer(*power);
    if (!microwatts) return forward_error(microwatts);
    if (!out.rows.empty() && *at < out.rows.back().at) {
      return file->fail_all_at(*time, "the time goes back: sort the rows by time");
    }
    all.stamps.push_back(at->time_since_epoch());
    all.lines.push_back(file->line());
    all.begins.push_back(false);
    all.columns.front().values.push_back(static_cast<double>(*microwatts) * 1e-6);
    if (!out.rows.empty() && *at == out.rows.back().at) {
      ++out.repeated;
      return {};
    }
    out.rows.push_back({*at, static_cast<double>(*microwatts) * 1e-6});
    return {};
  });
  if (!read) return forward_error(read);
  if (out.rows.empty()) return no_row(*file);
  if (auto one = check_one_gpu(*file, all); !one) return forward_error(one);
  out.cut_off = file->cut_off();
  return out;
}

Result<CsvCounter> read_csv_counter(const std::filesystem::path& path) {
  auto file = CsvFile::open(path);
  if (!file) return forward_error(file);
  auto time = file->optional_column(csv::kTime);
  if (!time) return forward_error(time);
  auto before = *time ? Result<CsvColumn>(**time) : file->column(csv::kBefore);
  if (!before) return forward_error(before);
  auto after = *time ? Result<CsvColumn>(**time) : file->column(csv::kAfter);
  if (!after) return forward_error(after);
  auto energy = file->column(csv::kEnergy);
  if (!energy) return forward_error(energy);
  if (auto ok = file->no_others(); !ok) return forward_error(ok);
  CsvCounter out;
  out.quantum = Energy::microjoules(1);
  for (int i = 0; i < energy->decimals; ++i) {
    out.quantum = Energy::microjoules(out.quantum.microjoules() * 10);
  }
  DeviceRows all;
  all.device = "gpu0";
  all.columns.push_back({"the counter", false, true, {}});
  auto read = each_row(*file, out.warnings, [&]() -> Result<void> {
    auto begin = instant(*file, *before);
    if (!begin) return forward_error(begin);
    auto end = instant(*file, *after);
    if (!end) return forward_error(end);
    const auto total = file->integer(*energy);
    if (!total) return forward_error(total);
    if (*end < *begin) return file->fail_at(*after, "the read ends before it begins");
    if (*total < 0) return file->fail_at(*energy, "an energy counter is never negative");
    if (!out.rows.empty() && *begin < out.rows.back().before) {
      return file->fail_all_at(*before, "the time goes back: sort the rows by time");
    }
    all.lines.push_back(file->line());
    all.columns.front().values.push_back(static_cast<double>(*total));
    if (file->field(*energy).find('.') != std::string_view::npos) {
      out.quantum = Energy::microjoules(1);
    }
    out.rows.push_back({*begin, *end, Energy::microjoules(*total)});
    return {};
  });
  if (!read) return forward_error(read);
  if (out.rows.empty()) return no_row(*file);
  if (auto one = check_one_gpu(*file, all); !one) return forward_error(one);
  out.cut_off = file->cut_off();
  return out;
}

}  // namespace jouleprof::importers
