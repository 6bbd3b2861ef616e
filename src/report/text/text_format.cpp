#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/costs/wall.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/text/table.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

// A line of its own below the summary, wrapped.
std::string line_to_text(const std::string& label, const std::string& words, Style style,
                         const TextOptions& text) {
  TextPage page(text);
  page.note(label, words, style);
  return page.joined();
}

// With units and costs, and with wall meters: the one of the options, or all that were recorded.
Result<std::string> summary(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options, const model::Profile& profile) {
  const auto costs = requested_costs(run, part, options);
  if (!costs) return forward_error(costs);
  std::string below;
  if (options.per) {
    auto per = per_unit(profile, *options.per, options.text.whole_machine);
    if (*costs) add_costs(per, **costs);
    below += per_unit_to_text(per, options.text);
  }
  if (*costs) below += costs_to_text(**costs, options.text);
  if (options.wall) {
    const auto made = compare_wall(run, part, *options.wall);
    if (!made) return forward_error(made);
    below += wall_to_text(*made, options.text);
  } else {
    for (const model::WallLog& log : recorded_walls(run)) {
      const auto made = compare_wall(run, part, log);
      below += made ? wall_to_text(*made, options.text)
                    : line_to_text("wall", "refused: " + made.error().message, Style::kAttention,
                                   options.text);
    }
  }
  return to_text(profile, options.text, below);
}

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const TextOptions& text = options.text;
  return write_table_or_summary(
      run, part, options,
      {.serving = [&](const auto& p) { return serving_to_text(p, *options.serving, text); },
       .windows = [&](const auto& profile) { return windows_to_text(profile, text); },
       .collectives = [&](const auto& profile) { return collectives_to_text(profile, text); },
       .activity =
           [&](const auto& activity) {
             ActivityOptions by = *options.by;
             by.imported = run.recording().run.source.starts_with("import:");
             return activity_to_text(activity, by, text);
           },
       .summary = [&](const auto& profile) { return summary(run, part, options, profile); }},
      out);
}

}  // namespace

extern constinit const Format text_format{.name = "text",
                                          .extension = ".txt",
                                          .shows = "the summary, or a table of --by, for people",
                                          .has_tables = true,
                                          .write = write};

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
// Without --details.
constexpr int kBriefLines = 15;
constexpr std::size_t kNextStepLines = 2;
constexpr std::size_t kDomainLines = 6;
constexpr std::size_t kFewestDomainLines = 4;
constexpr std::size_t kFewestBriefWindows = 2;
constexpr std::size_t kFewestBriefProcesses = 3;

std::string command_or_source(const model::RunInfo& run) {
  if (!run.command.empty()) return command_text(run);
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
  if (run.exit_status) text = exit_text(*run.exit_status) + " after ";
  const std::string part = part_text(c.profile);
  const bool is_of_part = !run.exit_status && !part.empty();
  text += duration_text(is_of_part ? c.profile.duration() : run_duration(c.profile));
  if (c.profile.start_time != RealTime{}) {
    text += ", started " + utc_seconds_text(run_start(c.profile));
  }
  if (!run.host.empty()) text += " on " + c.safe(run.host);
  return text + part;
}

std::string finding_text(const TextContext& c, const model::Finding& f) {
  return fmt::format("{}{} {} ({}{}): {}. {}", f.device.empty() ? "" : c.safe(f.device) + ": ",
                     energy_text(f.energy.energy), c.plus_minus(f.energy),
                     f.estimated ? "estimated, " : "", percent_text(f.share), c.safe(f.text),
                     c.safe(f.next_step));
}

// What is read first: how much, and what to do about the most expensive part of it.
Lines answer(const TextContext& c, std::size_t finding_lines) {
  Lines lines;
  if (c.profile.simulated) c.note_simulated(lines);
  append(lines, answer_block(c));
  if (c.profile.findings.empty()) return lines;
  const auto& f = c.profile.findings.front();
  if (c.text.details || !c.text.height) {
    c.note(lines, "finding", Style::kAttention, finding_text(c, f),
           std::max(finding_lines, kFindingLines[1]));
    return lines;
  }
  // Little room: the next step is not what is cut.
  auto what = f;
  what.next_step.clear();
  c.note(lines, "finding", Style::kAttention, finding_text(c, what), 1);
  c.note(lines, "", Style::kPlain, c.safe(f.next_step), kNextStepLines);
  return lines;
}

Lines head(const TextContext& c) {
  Lines lines;
  c.note(lines, "command", Style::kDim, c.safe(command_or_source(c.profile.run)), 1, Style::kBold);
  const bool failed = c.profile.run.exit_status.value_or(0) != 0;
  c.note(lines, "result", Style::kDim, result_text(c), 2,
         failed ? Style::kAttention : Style::kPlain);
  if (c.profile.run.being_written) {
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

void add_next(const TextContext& c, Lines& lines) {
  std::string next = c.text.next_command;
  if (next.empty() && !c.text.recording_path.empty()) {
    next = "jouleprof report " + shell_word(c.text.recording_path);
  }
  // Never cut: it is there to be copied.
  if (!next.empty()) {
    lines.push_back(paint("next     ", Style::kDim, c.text.colour) + "  " + c.safe(next));
  }
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
  for (std::size_t i = 1; i < c.profile.findings.size(); ++i) {
    c.note(lines, "finding", Style::kAttention, finding_text(c, c.profile.findings[i]),
           finding_lines);
  }
  const auto& warnings = c.profile.warnings;
  const std::size_t most = c.text.height ? kMostOnAScreen : kMostWarnings;
  const std::size_t shown = warnings.size() <= most ? warnings.size() : most - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    c.note(lines, "warning", Style::kAttention, c.safe(warnings[i]), 2);
  }
  if (shown < warnings.size()) {
    c.note(lines, "warning", Style::kAttention,
           fmt::format("{} more; each in --json", warnings.size() - shown), 1);
  }
  add_next(c, lines);
  return lines;
}

// What the answer leaves out, and where it is.
Lines brief_foot(const TextContext& c, std::size_t most_warnings) {
  Lines lines;
  const auto& warnings = c.profile.warnings;
  const std::size_t shown = std::min(warnings.size(), most_warnings);
  for (std::size_t i = 0; i < shown; ++i) {
    c.note(lines, "warning", Style::kAttention, c.safe(warnings[i]), c.text.height ? 1 : 2);
  }
  std::string rest;
  const auto add = [&rest](std::size_t count, const char* what) {
    if (count == 0) return;
    rest += fmt::format("{}{} {}{}", rest.empty() ? "" : ", ", count, what, count > 1 ? "s" : "");
  };
  add(warnings.size() - shown, shown > 0 ? "more warning" : "warning");
  add(c.profile.findings.empty() ? 0 : c.profile.findings.size() - 1, "more finding");
  const bool names_next = !c.text.next_command.empty() || !c.text.recording_path.empty();
  if (!rest.empty() || !names_next) {
    c.note(lines, "details", Style::kDim,
           rest.empty() ? "--details: levels, balance, repeatability, processes"
                        : "--details: " + rest + ", levels, balance, repeatability",
           1);
  }
  add_next(c, lines);
  return lines;
}

std::string brief_text(const TextContext& c) {
  const std::size_t below = c.text.lines_below;
  const auto height = static_cast<std::size_t>(c.text.height ? kBriefLines : kNoLimit) - below;
  const bool has_windows = !c.profile.windows.empty();
  std::array<Lines, 5> blocks{
      answer(c, kFindingLines[0]), head(c),
      brief_domain_block(c, has_windows || below > 0 ? kFewestDomainLines : kDomainLines), Lines{},
      brief_foot(c, c.text.height ? 1 : kMostWarnings)};
  std::size_t used = 0;
  for (const Lines& block : blocks) used += block.size();
  if (used > height) blocks[4] = brief_foot(c, 0);
  const std::size_t room = height > used + 2 ? height - used - 2 : 0;
  if (has_windows) {
    blocks[3] = window_block(c, std::clamp(room, kFewestBriefWindows, kMostWindows));
    if (used + blocks[3].size() > height) blocks[4] = brief_foot(c, 0);
  } else if (room > 0) {
    blocks[3] = process_block(c, std::min(room, kFewestBriefProcesses));
    if (used + blocks[3].size() > height) blocks[3].clear();
  }
  std::string text;
  for (const Lines& block : blocks) text += joined_lines(block);
  return text;
}

}  // namespace

std::string to_text(const model::Profile& profile, TextOptions options, const std::string& below) {
  options.lines_below = static_cast<std::size_t>(std::ranges::count(below, '\n'));
  return to_text(profile, options) + below;
}

std::string to_text(const model::Profile& profile, const TextOptions& options) {
  const TextContext c(profile, options);
  if (!options.details) return brief_text(c);
  // Answer, head, devices, levels, windows, processes, balance, foot.
  std::array<Lines, 8> blocks{answer(c, kFindingLines[0]),
                              head(c),
                              domain_block(c),
                              level_block(c),
                              {},
                              {},
                              balance_block(c),
                              {}};
  std::size_t used = 0;
  for (const Lines& block : blocks) used += block.size();
  const auto height = static_cast<std::size_t>(options.height.value_or(kNoLimit));
  for (const std::size_t finding_lines : kFindingLines) {
    used -= blocks.front().size();
    blocks.front() = answer(c, finding_lines);
    used += blocks.front().size();
    blocks.back() = foot(c, finding_lines);
    if (used + blocks.back().size() + kFewestProcesses + 2 <= height) break;
  }
  used += blocks.back().size();
  // Windows and processes get what is left: rows, a heading and a line for those folded.
  const auto room = [&] { return height > used + 2 ? height - used - 2 : 0; };
  blocks[4] = window_block(c, std::clamp(room(), kFewestWindows, kMostWindows));
  used += blocks[4].size();
  blocks[5] = process_block(c, std::clamp(room(), kFewestProcesses, kMostProcesses));
  used += blocks[5].size();

  std::string text;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool apart =
        !text.empty() && i + 1 < blocks.size() && !blocks[i].empty() && used < height;
    if (apart) ++used;
    if (apart) text += '\n';
    text += joined_lines(blocks[i]);
  }
  return text;
}

std::string costs_to_text(const Costs& costs, const TextOptions& text) {
  std::string all;
  for (const auto& line : cost_lines(costs, text.ascii, text.is_brief())) {
    all += line_to_text(line.label, line.words, Style::kDim, text);
  }
  return all;
}

namespace {

std::string wall_words(const WallComparison& w) {
  const double length = seconds(w.wall.end - w.wall.begin);
  return fmt::format(
      "{}{}{}{}, {} W mean: {} readings of {}{}, {} apart at most; a scope of its own, not in the "
      "total",
      w.host.empty() ? "" : w.host + ": ", energy_text(w.wall.energy),
      w.log.error ? fmt::format(" ±{}", percent_text(*w.log.error)) : "",
      w.uncovered > Duration{} ? fmt::format(" in {}", duration_text(w.wall.end - w.wall.begin))
                               : "",
      number_text(w.wall.energy.joules() / length), w.wall.readings, w.log.file,
      w.log.column.empty() ? "" : " (" + w.log.column + ")", duration_text(w.wall.longest_pause));
}

std::string explained_words(const WallComparison& w) {
  if (!w.explained()) {
    return w.host.empty() ? "unknown: no domain has an energy"
                          : "unknown: the log does not cover all of the machine's time";
  }
  const Energy rest = w.wall.energy - w.components->energy;
  std::string words = fmt::format("{} by {} ({})", percent_text(*w.explained()),
                                  fmt::join(w.domains, "+"), energy_text(w.components->energy));
  if (rest >= Energy{}) {
    words += fmt::format(
        "; {} is of {}{}parts without a sensor here (fans, disks, network, losses of "
        "the supply), or error of the sensors",
        energy_text(rest), fmt::join(w.missing, ", "), w.missing.empty() ? "" : " (unavailable), ");
  } else {
    words +=
        "; more than the meter reported: another machine's meter, shifted clocks, or error of "
        "the sensors";
  }
  if (w.slope) {
    words += fmt::format("; one more watt at the sensors is {:.2f} ± {:.2f} W at the meter",
                         w.slope->ratio, w.slope->error);
  }
  if (w.uncovered > Duration{}) {
    words += fmt::format("; {} of the run are not in the log, and not compared",
                         duration_text(w.uncovered));
  }
  return words;
}

}  // namespace

std::string wall_to_text(const WallComparison& wall, const TextOptions& text) {
  std::string all;
  const auto write = [&](const std::string& label, const std::string& words, Style style) {
    all += line_to_text(label, words, style, text);
  };
  write("wall", wall_words(wall), Style::kDim);
  write("explained", explained_words(wall), Style::kDim);
  for (const auto& warning : wall.log.warnings) write("warning", warning, Style::kAttention);
  return all;
}

}  // namespace jouleprof::report
