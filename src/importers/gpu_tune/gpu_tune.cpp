// gpu-tune's training_stats.csv and inference_stats.csv: samples of throughput and power while a
// model runs at one power limit after another. Columns max_watt (W), tokens_per_sec and
// total_power_draw (W) in any order; timestamp where there is one.
//
// Consecutive rows of one limit, without a pause between them, are one segment. Each becomes a
// window of one token: its tokens are the integral of the throughput, and its joules that of the
// power. So the time between segments, in which models are loaded, does not count. Without
// timestamps, all rows of a segment count alike.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv_table.h"
#include "importers/importer.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

constexpr double kMostWatts = 1e5;
constexpr double kPause = 5;  // times the usual distance of two rows

struct Row {
  double limit = 0;
  double rate = 0;
  double watts = 0;
  std::optional<Duration> at;
};

struct Columns {
  std::size_t limit = 0, rate = 0, watts = 0;
  std::optional<std::size_t> stamp;
};

Result<Columns> find_columns(const CsvRows& rows) {
  const auto limit = rows.column("max_watt");
  const auto rate = rows.column("tokens_per_sec");
  const auto watts = rows.column("total_power_draw");
  if (!limit) return forward_error(limit);
  if (!rate) return forward_error(rate);
  if (!watts) return forward_error(watts);
  return Columns{*limit, *rate, *watts, find_column(rows.header(), "timestamp")};
}

Result<Row> read_row(const CsvRows& rows, const Columns& columns) {
  const auto fields = split_csv(rows.text());
  if (!fields) return rows.fail_at(fields.error().message);
  if (auto fit = rows.check_fields(fields->size()); !fit) return forward_error(fit);
  const auto wrong = [&](const char* name, std::size_t column) {
    return rows.fail_at(fmt::format("{} is '{}'", name, (*fields)[column]));
  };
  const auto limit = parse_number(trim((*fields)[columns.limit]));
  const auto rate = parse_number(trim((*fields)[columns.rate]));
  const auto watts = parse_number(trim((*fields)[columns.watts]));
  if (!limit || *limit <= 0 || *limit > kMostWatts) return wrong("max_watt", columns.limit);
  if (!rate || *rate < 0) return wrong("tokens_per_sec", columns.rate);
  if (!watts || *watts <= 0 || *watts > kMostWatts) return wrong("total_power_draw", columns.watts);
  Row row{*limit, *rate, *watts, {}};
  if (!columns.stamp) return row;
  const auto stamp = trim((*fields)[*columns.stamp]);
  row.at = parse_calendar_time(stamp);
  if (!row.at) row.at = parse_seconds(stamp);
  if (!row.at) return wrong("timestamp", *columns.stamp);
  return row;
}

// The usual distance of two rows of one limit.
double usual_step(const std::vector<Row>& rows) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].limit != rows[i - 1].limit || !rows[i].at || !rows[i - 1].at) continue;
    const double step = seconds(*rows[i].at - *rows[i - 1].at);
    if (step > 0) steps.push_back(step);
  }
  if (steps.empty()) return 0;
  std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2),
                   steps.end());
  return steps[steps.size() / 2];
}

class Segments {
 public:
  Segments(const std::vector<Row>& rows, model::DomainId domain, model::Recording& recording)
      : rows_(rows), step_(usual_step(rows)), domain_(domain), recording_(recording) {
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= rows.size(); ++i) {
      if (i < rows.size() && is_continued(rows[i - 1], rows[i])) continue;
      add(begin, i);
      begin = i;
    }
  }
  std::size_t left_out() const { return left_out_; }

 private:
  bool is_continued(const Row& before, const Row& row) const {
    if (row.limit != before.limit) return false;
    if (!row.at || !before.at) return true;
    const double gap = seconds(*row.at - *before.at);
    return gap >= 0 && (step_ == 0 || gap <= kPause * step_);
  }

  // By the trapezoidal rule; a single row, and rows without times, count alike.
  void add(std::size_t begin, std::size_t end) {
    double tokens = 0, joules = 0, time = 0;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (!rows_[i].at || !rows_[i - 1].at) continue;
      const double by = seconds(*rows_[i].at - *rows_[i - 1].at);
      tokens += by * (rows_[i].rate + rows_[i - 1].rate) / 2;
      joules += by * (rows_[i].watts + rows_[i - 1].watts) / 2;
      time += by;
    }
    if (time <= 0) {
      for (std::size_t i = begin; i < end; ++i) {
        tokens += rows_[i].rate;
        joules += rows_[i].watts;
        time += 1;
      }
    }
    if (tokens <= 0) {
      ++left_out_;
      return;
    }
    model::ImportedWindow window;
    window.name = "token";
    window.duration = duration_of(time / tokens);
    window.energies.push_back({domain_, Energy::joules(joules / tokens)});
    window.labels.push_back({"power_limit_watts", fmt::format("{:g}", rows_[begin].limit)});
    recording_.imported_windows.push_back(std::move(window));
  }

  const std::vector<Row>& rows_;
  const double step_;
  const model::DomainId domain_;
  model::Recording& recording_;
  std::size_t left_out_ = 0;
};

Result<model::Recording> read_gpu_tune(std::span<const SourceText> sources, const ImportOptions&) {
  const SourceText& source = sources.front();
  CsvRows rows(source);
  const auto columns = find_columns(rows);
  if (!columns) return forward_error(columns);
  std::vector<Row> all;
  while (rows.next()) {
    const auto row = read_row(rows, *columns);
    if (!row) return forward_error(row);
    all.push_back(*row);
  }
  if (all.empty()) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: a header, and no sample under it", source.path));
  }
  RecordingBuilder builder("gpu-tune");
  const auto domain = builder.add_domain(model::DomainKind::kGpu, "gpu0", "GPUs of the table");
  builder.domain(domain).unavailable_reason = "the file holds samples of a few seconds' distance";
  if (rows.cut_off()) builder.set_cut_off(*rows.cut_off());
  const Segments segments(all, domain, builder.recording());
  if (segments.left_out() > 0) {
    builder.warn(fmt::format("{} segments without a token were left out", segments.left_out()));
  }
  builder.warn("the table does not say which GPUs it is of; energy is that of samples of power");
  return std::move(builder).take();
}

bool recognises_gpu_tune(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "max_watt") && find_column(header, "tokens_per_sec");
}

}  // namespace

const Importer kGpuTuneImporter{
    {"gpu-tune", "gpu-tune's samples (max_watt,tokens_per_sec,total_power_draw)"},
    false,
    recognises_gpu_tune,
    read_gpu_tune};

}  // namespace jouleprof::importers
