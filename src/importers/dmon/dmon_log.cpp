#include "importers/dmon/dmon_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "importers/dmon/dmon_header.h"
#include "importers/lines.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

constexpr std::int64_t kLargestIndex = 65535;

bool is_unit_line(const std::vector<std::string_view>& fields) {
  return !fields.empty() &&
         (fields[0] == "Idx" || fields[0].starts_with("YYYY") || fields[0].starts_with("HH:"));
}

bool is_value(std::string_view field) {
  return field == "-" || parse_number(field) || parse_time_of_day(field);
}

class Reader {
 public:
  Reader(const SourceText& source, std::optional<std::size_t> block)
      : source_(source), lines_(source.text), block_(block) {}

  Result<DmonLog> read() {
    bool first = true;
    while (lines_.next()) {
      const std::string_view line = trim(lines_.text());
      if (line.empty()) {
        if (capture_) header_.reset();
        in_pmon_ = false;
        continue;
      }
      if (!lines_.ended() && header_ && !log_.rows.empty()) {
        log_.cut_off_line = lines_.number();  // within a row, or a header that comes again
        break;
      }
      if (auto header = parse_dmon_header(line)) {
        if (auto taken = take_header(std::move(*header)); !taken) return forward_error(taken);
      } else if (first && !is_value(dmon_fields(line)[0])) {
        capture_ = true;
      } else if (auto taken = take_other(line); !taken) {
        return forward_error(taken);
      }
      first = false;
    }
    return choose_block();
  }

 private:
  // The rows of the chosen block, or of the only one.
  Result<DmonLog> choose_block() {
    if (!capture_) return std::move(log_);
    if (!block_ && blocks_.size() > 1) {
      std::vector<std::size_t> lines;
      for (const Block& block : blocks_) lines.push_back(block.line);
      return fail(
          Errc::kInvalidArgument,
          fmt::format("{}: it holds {} blocks of dmon rows, from the lines {}; they may be of "
                      "any times, so choose one with --block 1 to {}",
                      source_.path, blocks_.size(), fmt::join(lines, ", "), blocks_.size()));
    }
    if (block_ && (*block_ < 1 || *block_ > blocks_.size())) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{}: there is no block {} of dmon rows, only {}", source_.path,
                              *block_, blocks_.size()));
    }
    if (blocks_.empty()) return std::move(log_);
    const std::size_t chosen = block_.value_or(1);
    const auto begin =
        log_.rows.begin() + static_cast<std::ptrdiff_t>(blocks_[chosen - 1].first_row);
    const auto end =
        chosen < blocks_.size()
            ? log_.rows.begin() + static_cast<std::ptrdiff_t>(blocks_[chosen].first_row)
            : log_.rows.end();
    log_.rows = std::vector<DmonRow>(begin, end);
    return std::move(log_);
  }

  tl::unexpected<Error> error(std::string_view message) const {
    return fail_at(source_, lines_.number(), message);
  }

  Result<void> take_header(DmonHeader header) {
    if (header.is_pmon) {
      // In a log it is a sign of two logs in one file; a capture has both.
      if (!capture_) {
        return error(
            "a header of 'nvidia-smi pmon' among dmon's rows; put both logs into files of their "
            "own, "
            "and import them together");
      }
      header_.reset();
      in_pmon_ = true;
      return {};
    }
    if (header.has_instances) {
      return error("rows of single MIG instances look like those of whole GPUs; log without them");
    }
    if (!header.wrong_unit.empty()) {
      return error(fmt::format("{} is not in the unit that dmon uses", show(header.wrong_unit)));
    }
    if (!log_.rows.empty() && header.stamps() != log_.stamps) {
      return error("the header has other time columns than the one before; import the logs apart");
    }
    log_.stamps = header.stamps();
    for (const DmonColumn* column : header.columns) {
      if (column && column->field == DmonField::kPower) log_.has_power_column = true;
    }
    section_begins_ = section_begins_ || !header_;
    in_pmon_ = false;
    header_ = std::move(header);
    return {};
  }

  // Anything but a header or a blank line.
  Result<void> take_other(std::string_view line) {
    if (capture_ && !header_) {
      if (in_pmon_ && !line.starts_with('#') && is_value(dmon_fields(line)[0])) ++log_.pmon_rows;
      return {};
    }
    if (line.starts_with('#') || line.starts_with("Idx")) {
      const auto fields = dmon_fields(without_hash(line));
      if (header_ && is_unit_line(fields)) return check_units(fields);
      if (capture_) header_.reset();
      return {};  // a comment
    }
    const auto fields = dmon_fields(line);
    if (capture_ && !is_value(fields[0])) {
      header_.reset();
      return {};
    }
    if (!header_) {
      return error(
          "values without a header: dmon's columns depend on its -s option; log again "
          "without 'noheader', or put the header line in front");
    }
    if (!lines_.ended()) {
      log_.cut_off_line = lines_.number();
      return {};
    }
    return take_row(fields);
  }

  Result<void> check_units(const std::vector<std::string_view>& units) {
    if (units.size() != header_->columns.size()) {
      return error(fmt::format("{} units under a header of {} columns", units.size(),
                               header_->columns.size()));
    }
    for (std::size_t i = 0; i < units.size(); ++i) {
      const DmonColumn* column = header_->columns[i];
      if (column && units[i] != column->unit) {
        return error(
            fmt::format("{} is in {}, not in {}", column->name, show(units[i]), column->unit));
      }
    }
    return {};
  }

  Result<void> take_row(const std::vector<std::string_view>& fields) {
    if (!is_value(fields[0])) {
      return error(fmt::format("{} is no row of 'nvidia-smi dmon'", show(lines_.text())));
    }
    if (fields.size() != header_->columns.size()) {
      return error(fmt::format("{} fields under a header of {} columns", fields.size(),
                               header_->columns.size()));
    }
    DmonRow row;
    const auto gpu = parse_integer(fields[*header_->gpu]);
    if (!gpu || *gpu < 0 || *gpu > kLargestIndex) {
      return error(fmt::format("{} is no GPU index", show(fields[*header_->gpu])));
    }
    row.gpu = *gpu;
    if (auto stamped = take_stamp(fields, row); !stamped) return stamped;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const DmonColumn* column = header_->columns[i];
      if (!column || fields[i] == "-") continue;
      const auto [word, unit] = split_unit(fields[i]);
      const auto number = parse_number(word);
      if (!number || (!unit.empty() && unit != column->unit)) {
        return error(fmt::format("{} is {}, not a number in {}", column->name, show(fields[i]),
                                 column->unit));
      }
      row.values[static_cast<std::size_t>(column->field)] = *number;
    }
    row.starts_section = section_begins_;
    if (section_begins_) blocks_.push_back({log_.rows.size(), lines_.number()});
    section_begins_ = false;
    log_.rows.push_back(row);
    return {};
  }

  Result<void> take_stamp(const std::vector<std::string_view>& fields, DmonRow& row) {
    if (!header_->time) return {};
    const auto time = parse_time_of_day(fields[*header_->time]);
    if (!time) {
      return error(fmt::format("{} is no time of day", show(fields[*header_->time])));
    }
    if (header_->date) {
      const auto date = parse_compact_date(fields[*header_->date]);
      if (!date) return error(fmt::format("{} is no date", show(fields[*header_->date])));
      row.stamp = *date + *time;
      return {};
    }
    // Without a date a time that falls by more than half a day has passed midnight.
    constexpr Duration kHalfDay = std::chrono::hours{12};
    if (last_time_ && *time + kHalfDay < *last_time_) day_ += std::chrono::hours{24};
    if (day_ > std::chrono::hours{24 * 3650}) {
      return error("more than ten years of time stamps without dates");
    }
    last_time_ = *time;
    row.stamp = day_ + *time;
    return {};
  }

  struct Block {
    std::size_t first_row = 0;
    std::size_t line = 0;
  };

  const SourceText& source_;
  Lines lines_;
  const std::optional<std::size_t> block_;
  DmonLog log_;
  std::vector<Block> blocks_;
  std::optional<DmonHeader> header_;
  bool capture_ = false;
  bool section_begins_ = false;
  bool in_pmon_ = false;
  std::optional<Duration> last_time_;
  Duration day_{};
};

}  // namespace

bool is_dmon(std::string_view text) {
  bool first = true;
  for (Lines lines(text); lines.next();) {
    const std::string_view line = trim(lines.text());
    if (line.empty()) continue;
    if (const auto header = parse_dmon_header(line); header && !header->is_pmon) return true;
    if (first) {
      const auto fields = dmon_fields(line);
      if (fields.size() > 1 && std::all_of(fields.begin(), fields.end(), is_value)) return true;
    }
    first = false;
  }
  return false;
}

Result<DmonLog> read_dmon_log(const SourceText& source, std::optional<std::size_t> block) {
  return Reader(source, block).read();
}

}  // namespace jouleprof::importers
