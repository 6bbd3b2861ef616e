// What `nvidia-smi dmon` prints.
//
// A header line names the columns and may come again at any time, with other columns; a second
// header line has their units. Headers exist in three generations (temp / gtemp mtemp /
// jpg ofa ccpm) and in any order (-s); `-o` puts Date, Time or both in front; `--format csv` puts
// commas between. '-' is a value that the driver does not give.
//
// A file that begins with a dmon header is a log. Any other text is a capture: only its dmon blocks
// count, each from a header to the next blank or foreign line. One of them is read: they may be of
// any times.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "importers/logs/dmon_lines.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

namespace gauge = model::gauge;

bool is_header(std::string_view line) { return parse_dmon_header(line).has_value(); }

// A line below a header that says units: "# Idx W C".
bool is_dmon_units(const Cells& cells) {
  return !cells.empty() &&
         (cells[0] == "Idx" || cells[0].starts_with("YYYY") || cells[0].starts_with("HH:"));
}

bool is_comment(std::string_view line) {
  return line.starts_with('#') && !is_header(line) && !is_dmon_units(dmon_cells(line));
}

constexpr LogTool kTool{.format = "dmon",
                        .name = "nvidia-smi dmon",
                        .advice = "log power with 'nvidia-smi dmon -s puc'",
                        .fields = kDmonFields,
                        .cells = dmon_cells,
                        .is_header = is_header,
                        .is_units = is_dmon_units,
                        .is_message = is_comment,
                        .one_row_a_second = true,
                        .is_polled_mean = true};

struct Block {
  std::size_t line = 0;  // of its first row
  std::string text;      // its lines; all others are blank, so that line numbers stay
};

struct Blocks {
  std::vector<Block> blocks;
  std::size_t pmon_rows = 0;
};

// A cell of a row: a number, a time of day or "-".
bool is_dmon_value(std::string_view cell) {
  return cell == "-" || parse_number(cell) || parse_time_of_day(cell);
}

// Whether a line has a cell and begins with such a one; a lone "#" has none.
bool begins_with_value(const Cells& cells) {
  return !cells.empty() && is_dmon_value(cells.front());
}

// The blocks of a capture.
Blocks blocks_of(std::string_view text) {
  Blocks out;
  std::string blanks;
  std::optional<Block> open;
  bool in_pmon = false;
  const auto close = [&] {
    if (open && open->line > 0) out.blocks.push_back(std::move(*open));
    open.reset();
  };
  for (Lines lines(text); lines.next();) {
    const std::string_view line = trim(lines.text());
    const Cells cells = line.empty() ? Cells{} : dmon_cells(line);
    const auto header = parse_dmon_header(line);
    const bool is_row = !line.starts_with('#') && begins_with_value(cells);
    if ((header && !header->is_pmon) || (open && (is_row || is_dmon_units(cells)))) {
      if (!open) open = Block{0, blanks};
      open->text += std::string(lines.text()) + (lines.ended() ? "\n" : "");
      if (is_row && open->line == 0) open->line = lines.number();
      in_pmon = false;
    } else {
      close();
      in_pmon = header.has_value() || (in_pmon && !line.empty());
      out.pmon_rows += in_pmon && is_row ? 1 : 0;
    }
    blanks += '\n';
  }
  close();
  return out;
}

bool is_capture(std::string_view text) {
  for (Lines lines(text); lines.next();) {
    const std::string_view line = trim(lines.text());
    if (line.empty()) continue;
    return !is_header(line) && !begins_with_value(dmon_cells(line));
  }
  return false;
}

// The source of one block. Errors: invalid_argument where it must be chosen.
Result<SourceText> chosen_block(const SourceText& source, const ImportOptions& options,
                                std::size_t& pmon_rows) {
  auto found = blocks_of(source.text);
  auto& blocks = found.blocks;
  pmon_rows = found.pmon_rows;
  if (!options.block && blocks.size() > 1) {
    std::vector<std::size_t> lines;
    for (const Block& block : blocks) lines.push_back(block.line);
    return fail(
        Errc::kInvalidArgument,
        fmt::format("{}: it holds {} blocks of dmon rows, from the lines {}; they may be of any "
                    "times, so choose one with --block 1 to {}",
                    source.path, blocks.size(), fmt::join(lines, ", "), blocks.size()));
  }
  if (options.block && (*options.block < 1 || *options.block > blocks.size())) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{}: there is no block {} of dmon rows, only {}", source.path,
                            *options.block, blocks.size()));
  }
  if (blocks.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: a header, and no row under it", source.path));
  }
  return SourceText{source.path, std::move(blocks[options.block.value_or(1) - 1].text),
                    source.line_times};
}

Result<void> check_headers(const SourceText& source) {
  std::optional<bool> has_times;
  bool any = false;
  for (Lines lines(source.text); lines.next();) {
    const std::string_view line = trim(lines.text());
    const auto header = parse_dmon_header(line);
    if (!header) {
      if (!any && !line.empty() && !line.starts_with('#')) {
        return fail_at(source, lines.number(),
                       "values without a header: dmon's columns depend on its -s option; log again "
                       "without 'noheader', or put the header line in front");
      }
      continue;
    }
    any = true;
    if (header->is_pmon) {
      return fail_at(source, lines.number(),
                     "a header of 'nvidia-smi pmon' among dmon's rows; put both logs into files of "
                     "their own, and import them together");
    }
    if (header->has_instances) {
      return fail_at(source, lines.number(),
                     "rows of single MIG instances look like those of whole GPUs; log without "
                     "them");
    }
    if (has_times && *has_times != header->has_times) {
      return fail_at(source, lines.number(), kOtherTimes);
    }
    has_times = header->has_times;
  }
  return {};
}

class Activity {
 public:
  Activity(RowLog& log, bool trims) : log_(log), trims_(trims) {}

  void add(std::span<const std::size_t> rounds, const Layout& layout) {
    std::vector<Look> looks;
    const auto& rows = log_.rows();
    bool whole_watts = true;
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      const std::size_t end = r + 1 < rounds.size() ? rounds[r + 1] : rows.size();
      looks.emplace_back();
      watts_.push_back(0);
      for (std::size_t i = rounds[r]; i < end; ++i) {
        looks.back().push_back({rows[i].device, log_.value(rows[i], gauge::kGpuUtilisation),
                                log_.value(rows[i], gauge::kSmClock)});
        const auto watts = log_.power(rows[i]);
        watts_.back() += watts.value_or(0);
        whole_watts =
            whole_watts && (!watts || *watts == static_cast<double>(std::llround(*watts)));
      }
    }
    if (whole_watts) {
      log_.builder().warn("dmon shows whole watts: each power value is right to +-0.5 W at best");
    }
    const DmonActivity activity = find_activity(looks);
    if (activity.idle_looks >= 2) {
      log_.builder().recording().idle_spans.push_back(
          {layout.times.front(), layout.times[activity.idle_looks - 1]});
    }
    if (trims_) trim(activity, layout);
  }

 private:
  void trim(const DmonActivity& activity, const Layout& layout) {
    if (!activity.work) {
      log_.builder().warn(
          fmt::format("nothing is trimmed: sm reaches {:.0f} % in no row", 100 * kActiveSmRatio));
      return;
    }
    // A row covers the interval before it, so n rows of work begin at the row before them.
    const auto [first, last] = *activity.work;
    const HostTime begin = layout.times[first > 0 ? first - 1 : first];
    const HostTime end = layout.times[last];
    if (begin == end) return;
    auto& run = log_.builder().recording().run;
    run.work_begin = begin;
    run.work_end = end;
    const std::size_t looks = last - first + 1, left_out = watts_.size() - looks;
    log_.builder().warn(fmt::format(
        "trimmed to {} of {} looks, from {:.0f} s to {:.0f} s of the log: those where sm reaches "
        "{:.0f} %, less one at each end; {} left out, with about {:.1f} J",
        looks, watts_.size(), seconds(begin.time_since_epoch()), seconds(end.time_since_epoch()),
        100 * kActiveSmRatio, counted(left_out, "look"), joules_outside(layout, begin, end)));
  }

  // Each power holds for the interval that ends at its row.
  double joules_outside(const Layout& layout, HostTime begin, HostTime end) const {
    double joules = 0;
    for (std::size_t i = 1; i < watts_.size(); ++i) {
      if (layout.times[i] > begin && layout.times[i] <= end) continue;
      joules += watts_[i] * seconds(layout.times[i] - layout.times[i - 1]);
    }
    return joules;
  }

  RowLog& log_;
  const bool trims_;
  std::vector<double> watts_;  // of all GPUs, by look
};

bool recognises_dmon(std::string_view text) {
  bool first = true;
  for (Lines lines(text); lines.next();) {
    const std::string_view line = trim(lines.text());
    if (line.empty()) continue;
    if (const auto header = parse_dmon_header(line); header && !header->is_pmon) return true;
    if (first) {
      const Cells cells = dmon_cells(line);
      const bool values =
          std::ranges::all_of(cells, [](const std::string& c) { return is_dmon_value(c); });
      if (cells.size() > 1 && values) return true;
    }
    first = false;
  }
  return false;
}

Result<model::Recording> read_dmon(std::span<const SourceText> sources,
                                   const ImportOptions& options) {
  SourceText block;
  const SourceText* source = &sources.front();
  std::size_t pmon_rows = 0;
  if (is_capture(source->text)) {
    auto chosen = chosen_block(*source, options, pmon_rows);
    if (!chosen) return forward_error(chosen);
    block = std::move(*chosen);
    source = &block;
  }
  if (auto headers = check_headers(*source); !headers) return forward_error(headers);
  RowLog log(kTool, options);
  Activity activity(log, options.trim);
  log.on_rounds = [&](std::span<const std::size_t> rounds, const Layout& layout) {
    activity.add(rounds, layout);
  };
  if (auto read = log.read(*source); !read) return forward_error(read);
  if (pmon_rows > 0) {
    log.builder().warn(fmt::format("{} of pmon left out: put them into a file of their own",
                                   counted(pmon_rows, "row")));
  }
  return std::move(log).finish();
}

}  // namespace

extern const Importer kDmonImporter{
    {"dmon", "what 'nvidia-smi dmon' prints, with power in it (-s p...)"},
    false,
    recognises_dmon,
    read_dmon};

Cells dmon_cells(std::string_view line) {
  line = trim(line);
  if (line.starts_with('#')) line.remove_prefix(1);
  const bool commas = line.find(',') != std::string_view::npos;
  Cells cells;
  for (const auto cell : commas ? split(line, ',') : split_blanks(line)) {
    cells.emplace_back(trim(cell));
  }
  return cells;
}

std::optional<DmonHeader> parse_dmon_header(std::string_view line) {
  line = trim(line);
  const bool hash = line.starts_with('#');
  if (!hash && line.find(',') == std::string_view::npos) return std::nullopt;
  // Before splitting: a capture has a hundred thousand other lines.
  const std::string_view start = trim(line.substr(hash ? 1 : 0));
  constexpr std::string_view kFirst = "gGdDtT";
  if (start.empty() || kFirst.find(start.front()) == kFirst.npos) return std::nullopt;
  DmonHeader header;
  bool has_gpu = false, any = false;
  for (const std::string& cell : dmon_cells(line)) {
    const std::string name = lower_case(split_unit(cell).word);
    header.names.push_back(name);
    if (!has_gpu) {
      if (name != "gpu" && name != "date" && name != "time") return std::nullopt;
      has_gpu = name == "gpu";
      header.has_times = header.has_times || name == "time";
      continue;
    }
    if (name == "pid") header.is_pmon = true;
    if (name == "mig" || name == "gi" || name == "ci") header.has_instances = true;
    any = any || std::ranges::any_of(kDmonFields, [&](const LogField& field) {
            return field.role == LogRole::kValue && field.name == name;
          });
  }
  // "# gpu capture" in some other text is a title, not a header.
  if (!has_gpu || (!any && !header.is_pmon)) return std::nullopt;
  return header;
}

DmonActivity find_activity(const std::vector<Look>& looks) {
  struct ClockRange {
    double lowest = 0;
    double highest = 0;
  };
  std::map<std::size_t, ClockRange> clocks;
  DmonActivity activity;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    bool active = false;
    for (const GpuLook& gpu : looks[i]) {
      active = active || gpu.sm.value_or(0) >= kActiveSmRatio;
      if (!gpu.clock) continue;
      auto& range = clocks.try_emplace(gpu.gpu, ClockRange{*gpu.clock, *gpu.clock}).first->second;
      range.lowest = std::min(range.lowest, *gpu.clock);
      range.highest = std::max(range.highest, *gpu.clock);
    }
    if (!active) continue;
    if (!activity.work) activity.work = LookRange{i, i};
    activity.work->last = i;
  }
  const auto idle = [&](const GpuLook& gpu) {
    if (!gpu.sm || !gpu.clock || *gpu.sm != 0) return false;
    const ClockRange& range = clocks.at(gpu.gpu);
    return *gpu.clock == range.lowest && (!activity.work || range.lowest <= range.highest / 2);
  };
  while (activity.idle_looks < looks.size()) {
    const Look& look = looks[activity.idle_looks];
    if (!std::ranges::all_of(look, idle)) break;
    ++activity.idle_looks;
  }
  if (activity.work && activity.work->last - activity.work->first >= 2) {
    ++activity.work->first;
    --activity.work->last;
  }
  return activity;
}

}  // namespace jouleprof::importers
