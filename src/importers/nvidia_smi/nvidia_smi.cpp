// Logs of `nvidia-smi --query-gpu=timestamp,index,power.draw,...
// --format=csv[,nounits][,noheader]`.
//
// One row a GPU and look. A header may come again (logs appended to one file). Without index, uuid
// or bus id the rows of one look are separated by their times: they come within milliseconds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv_table.h"
#include "importers/device_log.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "importers/nvidia_smi/gpus_of_rows.h"
#include "importers/nvidia_smi/query_columns.h"
#include "importers/nvidia_smi/semicolons.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

constexpr Duration kDefaultInterval = std::chrono::seconds{1};
// power.draw is a mean over the last second on Ampere and newer boards.
constexpr Duration kAveragingWindow = std::chrono::seconds{1};

std::vector<std::string> fields_of(std::string_view line) {
  auto fields = split_csv(line);
  if (!fields) return {};
  for (std::string& field : *fields) field = std::string(trim(field));
  return std::move(*fields);
}

// A header has power.draw, or the time and something of a GPU.
std::optional<QueryColumns> parse_header(std::string_view line) {
  if (line.find("power.draw") == std::string_view::npos &&
      line.find("timestamp") == std::string_view::npos) {
    return std::nullopt;
  }
  QueryColumns columns = parse_query_columns(fields_of(line));
  const bool any = std::any_of(columns.fields.begin(), columns.fields.end(),
                               [](const QueryField* field) { return field != nullptr; });
  if (!any) return std::nullopt;
  return columns;
}

class Import {
 public:
  Import(const SourceText& source, const ImportOptions& options)
      : source_(source), options_(options), lines_(source.text), builder_("nvidia-smi") {}

  Result<model::Recording> run() {
    if (auto rows = read_rows(); !rows) return forward_error(rows);
    if (rows_.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: a header, and no row under it", source_.path));
    }
    if (!columns_->has_power()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: it has no power; log it with --query-gpu=timestamp,index,"
                              "power.draw",
                              source_.path));
    }
    if (auto gpus = find_gpus(); !gpus) return forward_error(gpus);
    stamp_rows();
    name_what_is_left_out();
    const Layout layout = add_log(log_, builder_, kAveragingWindow, "the log has no power of it");
    builder_.set_clock(layout, columns_->time ? local_to_real : nullptr);
    return std::move(builder_).finish(source_.path, layout.times.front(), layout.times.back());
  }

 private:
  tl::unexpected<Error> error(std::string_view message) const {
    return fail_at(source_, lines_.number(), message);
  }

  Result<void> read_rows() {
    if (!options_.columns.empty()) {
      if (auto set = set_columns(parse_query_columns(split_list(options_.columns))); !set)
        return set;
    }
    bool section_begins = false;
    while (lines_.next()) {
      const std::string_view line = trim(lines_.text());
      if (line.empty()) continue;
      if (!lines_.ended() && !rows_.empty()) {
        builder_.set_cut_off(cut_off_warning(source_.path, lines_.number()));
        break;
      }
      if (auto header = parse_header(line)) {
        section_begins = !rows_.empty();
        if (auto set = set_columns(std::move(*header)); !set) return set;
        continue;
      }
      auto fields = fields_of(line);
      // A message of nohup or nvidia-smi, in a file that has its stderr, too.
      if (fields.size() < 2 && (!columns_ || columns_->size() > 1)) {
        ++foreign_lines_;
        continue;
      }
      if (!columns_) {
        if (auto guessed = guess_columns(fields); !guessed) return guessed;
      }
      if (auto row = take_row(fields, section_begins); !row) return row;
      section_begins = false;
    }
    return {};
  }

  static std::vector<std::string> split_list(std::string_view list) {
    std::vector<std::string> names;
    for (const auto name : split(list, ',')) names.emplace_back(trim(name));
    return names;
  }

  Result<void> set_columns(QueryColumns columns) {
    if (!columns.wrong_unit.empty()) {
      return error(
          fmt::format("{} is not in the unit that nvidia-smi uses", show(columns.wrong_unit)));
    }
    if (columns_ && columns_->fields != columns.fields && !rows_.empty()) {
      return error("the header has other columns than the one before; import the logs apart");
    }
    if (columns_ && columns_->size() != columns.size() && !options_.columns.empty()) {
      return error(fmt::format("--columns names {} columns, and the header {}", columns_->size(),
                               columns.size()));
    }
    columns_ = std::move(columns);
    return {};
  }

  Result<void> guess_columns(const std::vector<std::string>& fields) {
    columns_ = guess_query_columns(fields);
    if (columns_) return {};
    return error(
        "values without a header: give the list of --query-gpu with --columns, such as --columns "
        "timestamp,index,power.draw");
  }

  Result<void> take_row(const std::vector<std::string>& fields, bool starts_section) {
    if (fields.size() != columns_->size()) {
      return error(fmt::format("{} fields under a header of {}", fields.size(), columns_->size()));
    }
    GpuRow row;
    row.starts_section = starts_section;
    if (columns_->time) {
      const auto time = parse_query_time(fields[*columns_->time]);
      if (!time) return error(fmt::format("{} is no time", show(fields[*columns_->time])));
      row.stamp = *time;
    }
    if (columns_->index) {
      const auto index = parse_integer(fields[*columns_->index]);
      if (!index || *index < 0 || *index > 65535) {
        return error(fmt::format("{} is no GPU index", show(fields[*columns_->index])));
      }
      row.index = *index;
    }
    if (columns_->uuid) row.uuid = fields[*columns_->uuid];
    if (columns_->bus) row.bus = fields[*columns_->bus];
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const QueryField* field = columns_->fields[i];
      if (!field) continue;
      auto value = parse_value(fields[i], *field);
      if (!value) return forward_error(value);
      row.values.push_back(*value);
    }
    rows_.push_back(std::move(row));
    return {};
  }

  Result<std::optional<double>> parse_value(const std::string& cell, const QueryField& field) {
    if (is_absent(cell)) return std::optional<double>{};
    const auto [word, unit] = split_unit(cell);
    const auto number = parse_number(word);
    if (!number || (!unit.empty() && unit != field.unit)) {
      return error(fmt::format("{} is {}, not a number in {}", field.name, show(cell), field.unit));
    }
    return std::optional<double>(*number);
  }

  Result<void> find_gpus() {
    auto gpus = gpus_of_rows(rows_, columns_->time.has_value());
    if (!gpus)
      return fail(gpus.error().code, fmt::format("{}: {}", source_.path, gpus.error().message));
    log_.devices = std::move(gpus->devices);
    if (!gpus->warning.empty()) builder_.warn(std::move(gpus->warning));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      log_.rows.push_back({rows_[i].stamp, gpus->device_of_row[i], std::move(rows_[i].values),
                           rows_[i].starts_section});
    }
    for (const QueryField* field : columns_->fields) {
      if (!field) continue;
      LogColumn column{field->kind, std::string(field->sensor), field->scale};
      if (field->kind == model::SensorKind::kPowerAverage) column.window = kAveragingWindow;
      log_.columns.push_back(std::move(column));
    }
    return {};
  }

  void stamp_rows() {
    if (columns_->time) {
      builder_.warn("the log's time stamps are local time, read in this machine's time zone");
      if (options_.interval) {
        builder_.warn("--interval is not used: the log has its own time stamps");
      }
      return;
    }
    const Duration interval = options_.interval.value_or(kDefaultInterval);
    std::vector<std::int64_t> looks(log_.devices.size());
    for (LogRow& row : log_.rows) row.stamp = interval * looks[row.device]++;
    builder_.warn(fmt::format(
        "the log has no time stamps: its rows are taken to be {} s apart{}", seconds(interval),
        options_.interval ? "" : "; give --interval if nvidia-smi ran with another -l"));
  }

  void name_what_is_left_out() {
    if (!columns_->left_out.empty()) {
      builder_.warn(fmt::format("{} column{} left out: {}", columns_->left_out.size(),
                                columns_->left_out.size() == 1 ? "" : "s",
                                show(fmt::format("{}", fmt::join(columns_->left_out, ", ")), 200)));
    }
    if (foreign_lines_ > 0) {
      builder_.warn(fmt::format("{} line{} that {} no row of nvidia-smi left out", foreign_lines_,
                                foreign_lines_ == 1 ? "" : "s",
                                foreign_lines_ == 1 ? "is" : "are"));
    }
    if (columns_->fields.end() !=
        std::find_if(columns_->fields.begin(), columns_->fields.end(),
                     [](const QueryField* f) { return f && f->name == "power.draw"; })) {
      builder_.warn(
          "power.draw is the mean of the last second on Ampere and newer boards; on older ones it "
          "is the power of 10 to 100 ms, and the log does not say which");
    }
  }

  const SourceText& source_;
  const ImportOptions& options_;
  Lines lines_;
  RecordingBuilder builder_;
  std::optional<QueryColumns> columns_;
  std::vector<GpuRow> rows_;
  DeviceLog log_;
  std::size_t foreign_lines_ = 0;
};

bool recognises_nvidia_smi(std::string_view text) {
  if (has_semicolons(text)) return true;
  constexpr std::size_t kMessages = 5;  // lines before the log
  for (Lines lines(text); lines.next() && lines.number() <= kMessages;) {
    const std::string_view line = trim(lines.text());
    if (parse_header(line) || guess_query_columns(fields_of(line))) return true;
    if (line.find(',') != std::string_view::npos) return false;
  }
  return false;
}

Result<model::Recording> read_nvidia_smi(std::span<const SourceText> sources,
                                         const ImportOptions& options) {
  const SourceText& source = sources.front();
  if (!has_semicolons(source.text)) return Import(source, options).run();
  auto text = with_commas(source);
  if (!text) return forward_error(text);
  const SourceText rewritten{source.path, std::move(*text)};
  return Import(rewritten, options).run();
}

}  // namespace

const Importer kNvidiaSmiImporter{
    {"nvidia-smi", "nvidia-smi --query-gpu=...,power.draw,... --format=csv"},
    false,
    recognises_nvidia_smi,
    read_nvidia_smi};

}  // namespace jouleprof::importers
