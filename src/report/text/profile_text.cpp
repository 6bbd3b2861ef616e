#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/being_written.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

constexpr int kNoLimit = 100'000;  // lines
constexpr std::size_t kMostProcesses = 5;
constexpr std::size_t kFewestProcesses = 1;
// Of each finding, the most that fits; its end is the next step.
constexpr std::size_t kFindingLines[] = {8, 3, 1};
constexpr std::size_t kMostWarnings = 3;
constexpr std::size_t kMostOnAScreen = 2;
constexpr std::size_t kMostWindows = 12;
constexpr std::size_t kFewestWindows = 5;

std::string command_text(const model::RunInfo& run) {
  std::string text;
  for (const std::string& word : run.command) text += (text.empty() ? "" : " ") + shell_word(word);
  if (!text.empty()) return text;
  return run.source.empty() ? "none" : fmt::format("none ({})", run.source);
}

std::string result_text(const TextContext& c) {
  const auto& run = c.profile.run;
  std::string text;
  if (!c.profile.has_span()) {
    std::size_t windows = 0;
    for (const auto& group : c.profile.windows) windows += group.count;
    return fmt::format("{} windows that another tool measured, without readings and time stamps",
                       windows);
  }
  if (run.exit_status) {
    text = fmt::format("exit status {}", *run.exit_status);
    if (*run.exit_status > 128 && *run.exit_status <= 192) {
      text += fmt::format(" (signal {})", *run.exit_status - 128);
    }
    text += " after ";
  }
  text += duration_text(c.profile.duration());
  if (c.profile.start_time != RealTime{}) {
    text += ", started " + utc_seconds_text(c.profile.start_time);
  }
  if (!run.host.empty()) text += " on " + c.safe(run.host);
  const bool is_part = run.work_begin && (c.profile.begin > *run.work_begin ||
                                          (run.work_end && c.profile.end < *run.work_end));
  if (is_part) {
    text +=
        fmt::format(", from {} to {} of the run", duration_text(c.profile.begin - *run.work_begin),
                    duration_text(c.profile.end - *run.work_begin));
  }
  return text;
}

Lines head(const TextContext& c) {
  Lines lines;
  if (c.profile.simulated) {
    c.note(lines, "SIMULATED", Style::kAlarm,
           "These figures come from a simulated device. Nothing was measured.", 2, Style::kAlarm);
  }
  c.note(lines, "command", Style::kDim, c.safe(command_text(c.profile.run)), 1, Style::kBold);
  const bool failed = c.profile.run.exit_status.value_or(0) != 0;
  c.note(lines, "result", Style::kDim, result_text(c), 2,
         failed ? Style::kAttention : Style::kPlain);
  if (!c.profile.run.complete && model::is_being_written(c.profile.warnings)) {
    c.note(lines, "UNFINISHED", Style::kAlarm,
           "The recording is still being written; figures end with what it has so far.", 2,
           Style::kAttention);
  } else if (!c.profile.run.complete) {
    c.note(lines, "CUT OFF", Style::kAlarm,
           "The recording was not closed in order; its last moments are missing.", 2,
           Style::kAttention);
  }
  return lines;
}

Lines foot(const TextContext& c, std::size_t finding_lines) {
  Lines lines;
  if (c.profile.overhead) {
    const auto& o = *c.profile.overhead;
    std::string cost = duration_text(o.cpu_time) + " of CPU time";
    if (o.wall_time > Duration{}) {
      cost += fmt::format(" ({} of one core)",
                          percent_text(seconds(o.cpu_time) / seconds(o.wall_time)));
    }
    if (o.peak_memory_bytes > 0) cost += ", " + bytes_text(o.peak_memory_bytes) + " of memory";
    c.note(lines, "own cost", Style::kDim, cost, 1);
  }
  for (const auto& f : c.profile.findings) {
    c.note(lines, "finding", Style::kAttention,
           fmt::format("{}{} {} ({}{}): {}. {}", f.device.empty() ? "" : c.safe(f.device) + ": ",
                       energy_text(f.energy), c.plus_minus(f.error, f.energy),
                       f.estimated ? "estimated, " : "", percent_text(f.share), c.safe(f.text),
                       c.safe(f.next_step)),
           finding_lines);
  }
  const auto& warnings = c.profile.warnings;
  const std::size_t most = c.options.height ? kMostOnAScreen : kMostWarnings;
  const std::size_t shown = warnings.size() <= most ? warnings.size() : most - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    c.note(lines, "warning", Style::kAttention, c.safe(warnings[i]), 2);
  }
  if (shown < warnings.size()) {
    c.note(lines, "warning", Style::kAttention,
           fmt::format("{} more; each in --json", warnings.size() - shown), 1);
  }
  std::string next = c.options.next_command;
  if (next.empty() && !c.options.recording_path.empty()) {
    next = "jouleprof report " + shell_word(c.options.recording_path);
  }
  // Never cut: it is there to be copied.
  if (!next.empty()) {
    lines.push_back(paint("next     ", Style::kDim, c.options.colour) + "  " + c.safe(next));
  }
  return lines;
}

}  // namespace

std::string to_text(const model::Profile& profile, const TextOptions& options) {
  const TextContext c(profile, options);
  std::array<Lines, 7> blocks{head(c), domain_block(c), level_block(c), {}, {}, balance_block(c),
                              {}};
  std::size_t used = 0;
  for (const Lines& block : blocks) used += block.size();
  const auto height = static_cast<std::size_t>(options.height.value_or(kNoLimit));
  for (const std::size_t finding_lines : kFindingLines) {
    blocks.back() = foot(c, finding_lines);
    if (used + blocks.back().size() + kFewestProcesses + 2 <= height) break;
  }
  used += blocks.back().size();
  // Windows and processes get what is left: rows, a heading and a line for those folded.
  const auto room = [&] { return height > used + 2 ? height - used - 2 : 0; };
  blocks[3] = window_block(c, std::clamp(room(), kFewestWindows, kMostWindows));
  used += blocks[3].size();
  blocks[4] = process_block(c, std::clamp(room(), kFewestProcesses, kMostProcesses));
  used += blocks[4].size();

  std::string text;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool apart = i > 0 && i + 1 < blocks.size() && !blocks[i].empty() && used < height;
    if (apart) ++used;
    if (apart) text += '\n';
    for (const std::string& line : blocks[i]) text += line + '\n';
  }
  return text;
}

}  // namespace jouleprof::report
