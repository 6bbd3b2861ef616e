#include "importers/csv/csv_readings.h"

#include <fmt/format.h>

#include "importers/csv/csv_file.h"
#include "importers/csv/csv_units.h"

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
  for (;;) {
    auto more = file->next();
    if (!more) return forward_error(more);
    if (!*more) break;
    auto at = instant(*file, *time);
    if (!at) return forward_error(at);
    const auto microwatts = file->integer(*power);
    if (!microwatts) return forward_error(microwatts);
    if (!out.rows.empty() && *at < out.rows.back().at) {
      return file->fail_at(*time, "the time goes back: sort the rows by time");
    }
    if (!out.rows.empty() && *at == out.rows.back().at) {
      ++out.repeated;
      continue;
    }
    out.rows.push_back({*at, static_cast<double>(*microwatts) * 1e-6});
  }
  if (out.rows.empty()) return no_row(*file);
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
  for (;;) {
    auto more = file->next();
    if (!more) return forward_error(more);
    if (!*more) break;
    auto begin = instant(*file, *before);
    if (!begin) return forward_error(begin);
    auto end = instant(*file, *after);
    if (!end) return forward_error(end);
    const auto total = file->integer(*energy);
    if (!total) return forward_error(total);
    if (*end < *begin) return file->fail_at(*after, "the read ends before it begins");
    if (!out.rows.empty() && *begin < out.rows.back().before) {
      return file->fail_at(*before, "the time goes back: sort the rows by time");
    }
    if (*total < 0) return file->fail_at(*energy, "an energy counter is never negative");
    if (file->field(*energy).find('.') != std::string_view::npos) {
      out.quantum = Energy::microjoules(1);
    }
    out.rows.push_back({*begin, *end, Energy::microjoules(*total)});
  }
  if (out.rows.empty()) return no_row(*file);
  out.cut_off = file->cut_off();
  return out;
}

}  // namespace jouleprof::importers
