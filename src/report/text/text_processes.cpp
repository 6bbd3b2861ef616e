#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>

#include "report/quantity.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using model::DomainKind;
using model::DomainProfile;
using model::ProcessProfile;
using model::Profile;

// Kinds of domains that were attributed and are not part of another.
std::vector<DomainKind> shared_kinds(const Profile& profile) {
  std::vector<DomainKind> kinds;
  for (const DomainProfile& d : profile.domains) {
    if (d.domain.parent || !processes_of(profile, d)) continue;
    if (std::ranges::find(kinds, d.domain.kind) == kinds.end()) {
      kinds.push_back(d.domain.kind);
    }
  }
  return kinds;
}

std::optional<Energy> share_of(const Profile& profile, const ProcessProfile& p, DomainKind kind) {
  std::optional<Energy> sum;
  for (const auto& share : p.shares) {
    for (const DomainProfile& d : profile.domains) {
      if (d.domain.id != share.domain || d.domain.kind != kind || d.domain.parent) continue;
      sum = sum.value_or(Energy{}) + share.energy;
    }
  }
  return sum;
}

// Whether shares of this kind are of all energy, because that at rest is unknown.
bool includes_rest(const Profile& profile, DomainKind kind) {
  return std::ranges::any_of(profile.domains, [kind](const auto& d) {
    return d.domain.kind == kind && !d.domain.parent && d.shares_include_rest;
  });
}

std::string label_of(const TextContext& c, const ProcessProfile& p) {
  std::string_view words = p.process.command_line;
  const auto slash = words.substr(0, words.find(' ')).rfind('/');
  if (slash != std::string_view::npos) words.remove_prefix(slash + 1);
  const std::string name = c.safe(words.empty() ? p.process.name : words);
  return p.process.pid > 0 ? fmt::format("{} {}", p.process.pid, name) : name;
}

// A column: what a process has to show in it. One with a sum shows it for those folded.
struct Column {
  std::string heading;
  std::function<std::optional<std::string>(const ProcessProfile*, const ProcessProfile*)> text;
};

// The sum of a figure over some processes, as text; nothing when none of them has it.
template <typename Figure, typename Format>
auto sum_text(Figure figure, Format format) {
  return [=](const ProcessProfile* begin, const ProcessProfile* end) {
    std::optional<std::decay_t<decltype(*figure(*begin))>> sum;
    for (; begin != end; ++begin) {
      if (const auto part = figure(*begin)) sum = sum ? *sum + *part : *part;
    }
    return sum ? std::optional<std::string>(format(*sum)) : std::nullopt;
  };
}

// The same of one process; peaks of several cannot be added.
template <typename Figure, typename Format>
auto single_text(Figure figure, Format format) {
  return [=](const ProcessProfile* begin, const ProcessProfile* end) {
    const auto value = figure(*begin);
    return value && end - begin == 1 ? std::optional<std::string>(format(*value)) : std::nullopt;
  };
}

// The proportional set size; of a process too short for that to be read, the resident one.
std::optional<std::string> memory_text(const ProcessProfile* begin, const ProcessProfile* end) {
  if (end - begin != 1) return std::nullopt;  // peaks of several cannot be added
  if (begin->peak_pss_bytes) return bytes_text(*begin->peak_pss_bytes);
  if (begin->peak_rss_bytes) return bytes_text(*begin->peak_rss_bytes) + " RSS";
  return std::nullopt;
}

std::vector<Column> columns_of(const Profile& profile) {
  std::vector<Column> columns;
  columns.push_back({"CPU time", sum_text([](const auto& p) { return p.cpu_time; },
                                          [](Duration d) {
                                            // Its own and its children's, in the kernel and outside
                                            // of it, are read in ticks of 10 ms.
                                            return d == Duration{} ? std::string("<40 ms")
                                                                   : duration_text(d);
                                          })});
  for (const DomainKind kind : shared_kinds(profile)) {
    columns.push_back(
        {std::string(to_string(kind)) + (includes_rest(profile, kind) ? " all" : ""),
         sum_text([&profile, kind](const auto& p) { return share_of(profile, p, kind); },
                  energy_text)});
  }
  columns.push_back({"memory", memory_text});
  columns.push_back(
      {"GPU mem", single_text([](const auto& p) { return p.peak_gpu_memory_bytes; }, bytes_text)});
  const bool any_within = std::ranges::any_of(profile.domains, [](const auto& d) {
    return d.within_command.value_or(Energy{}) > Energy{};
  });
  const std::size_t shares = shared_kinds(profile).size();
  std::vector<Column> kept;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool any = std::ranges::any_of(
        profile.processes, [&](const auto& p) { return columns[i].text(&p, &p + 1).has_value(); });
    // The row of what is not divided has these.
    if (any || (any_within && i <= shares)) kept.push_back(std::move(columns[i]));
  }
  return kept;
}

// What the command's processes used, but of which of them is unknown; a row of its own.
void add_within_command(const Profile& profile, std::size_t columns, Table& table) {
  const auto kinds = shared_kinds(profile);
  std::vector<Cell> row{{"one or several of these"}};
  bool any = false;
  row.push_back({"-"});  // CPU time
  for (const DomainKind kind : kinds) {
    Energy sum;
    for (const DomainProfile& d : profile.domains) {
      if (d.domain.kind == kind && !d.domain.parent) sum += d.within_command.value_or(Energy{});
    }
    any |= sum > Energy{};
    row.push_back({sum > Energy{} ? energy_text(sum) : "-"});
  }
  if (!any) return;
  row.resize(columns + 1, {"-"});
  table.add(std::move(row));
}

// Of the listed processes, those whose share may be another by more than a tenth, with its bounds.
std::string open_shares_text(const TextContext& c, DomainKind kind, std::size_t listed) {
  constexpr double kNoted = 0.1;
  constexpr std::size_t kMost = 3;
  std::vector<std::string> open;
  for (std::size_t i = 0; i < listed; ++i) {
    const ProcessProfile& p = c.profile.processes[i];
    Energy share;
    Energy low;
    Energy high;
    for (const auto& s : p.shares) {
      for (const DomainProfile& d : c.profile.domains) {
        if (d.domain.id != s.domain || d.domain.kind != kind || d.domain.parent) continue;
        share += s.energy;
        low += s.bounds ? s.bounds->low : s.energy;
        high += s.bounds ? s.bounds->high : s.energy;
      }
    }
    if (std::max(share - low, high - share).joules() <= kNoted * share.joules()) continue;
    open.push_back(
        fmt::format("pid {}: {} to {}", p.process.pid, energy_text(low), energy_text(high)));
  }
  if (open.empty()) return {};
  const std::size_t more = open.size() > kMost + 1 ? open.size() - kMost : 0;
  open.resize(open.size() - more);
  return fmt::format("{}: the division by use is uncertain: {}{}", to_string(kind),
                     fmt::join(open, ", "),
                     more > 0 ? fmt::format(", {} more in --json", more) : "");
}

}  // namespace

Lines process_block(const TextContext& c, std::size_t most) {
  const auto& all = c.profile.processes;
  if (all.empty()) return {};
  const std::vector<Column> columns = columns_of(c.profile);
  const bool shares = !shared_kinds(c.profile).empty();
  std::vector<std::string> headings{shares ? "process, estimated shares" : "process"};
  for (const Column& column : columns) headings.push_back(column.heading);
  Table table(headings);

  const auto add = [&](std::string label, const ProcessProfile* begin, const ProcessProfile* end) {
    std::vector<Cell> row{{std::move(label)}};
    for (const Column& column : columns) row.push_back({column.text(begin, end).value_or("-")});
    table.add(std::move(row));
  };
  const std::size_t shown = all.size() <= most + 1 ? all.size() : most;
  for (std::size_t i = 0; i < shown; ++i) add(label_of(c, all[i]), &all[i], &all[i] + 1);
  if (shown < all.size()) {
    add(fmt::format("{} more processes", all.size() - shown), all.data() + shown,
        all.data() + all.size());
  }
  add_within_command(c.profile, columns.size(), table);
  Lines lines = table.lines(c.width, c.text.colour);
  std::vector<std::string> whole;
  for (const DomainKind kind : shared_kinds(c.profile)) {
    if (includes_rest(c.profile, kind)) whole.emplace_back(to_string(kind));
  }
  if (!whole.empty()) {
    c.note(lines, "", Style::kDim,
           fmt::format("{} all: shares of all energy by use, because the energy at rest is unknown",
                       fmt::join(whole, ", ")),
           2);
  }
  for (const DomainKind kind : shared_kinds(c.profile)) {
    const std::string open = open_shares_text(c, kind, shown);
    if (!open.empty()) c.note(lines, "", Style::kDim, open, 2);
  }
  return lines;
}

}  // namespace jouleprof::report
