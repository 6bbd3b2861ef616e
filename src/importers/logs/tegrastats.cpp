// What `tegrastats` prints on a Jetson: one line a look, with a date and time since JetPack 5:
//
//   11-25-2026 13:40:02 RAM 2448/7772MB ... GR3D_FREQ 0% ... VDD_IN 4904mW/4904mW VDD_SOC ...
//   RAM 2448/3964MB ... POM_5V_IN 2532/2532 POM_5V_GPU 123/123 POM_5V_CPU 493/493
//
// A rail has its power now and its mean since tegrastats began, in milliwatts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "model/device/sensor_table.h"

namespace jouleprof::importers {
namespace {

using model::DomainKind;

const model::JetsonRail* find_rail(std::string_view name) {
  for (const auto& rail : model::kJetsonRails) {
    if (rail.name == name) return &rail;
  }
  return nullptr;
}

// "4904mW/4904mW" or "2532/2532": watts.
std::optional<double> parse_power(std::string_view word) {
  const auto slash = word.find('/');
  if (slash == word.npos) return std::nullopt;
  for (std::string_view part : {word.substr(slash + 1), word.substr(0, slash)}) {
    if (part.ends_with("mW")) part.remove_suffix(2);
    const auto milliwatts = parse_number(part);
    if (!milliwatts) return std::nullopt;
    if (part.data() == word.data()) return *milliwatts * 1e-3;
  }
  return std::nullopt;
}

// "11-25-2026 13:40:02": month and day first.
std::optional<LogTime> take_time(const std::vector<std::string_view>& words) {
  if (words.size() < 2 || words[0].size() != 10 || words[0][2] != '-') return std::nullopt;
  return parse_log_time(
      fmt::format("{}-{} {}", words[0].substr(6), words[0].substr(0, 5), words[1]));
}

// A rail's name is in capitals; "RAM 2448/7772MB" has another unit.
bool is_rail(std::string_view name) {
  return name.find('_') != name.npos && std::ranges::all_of(name, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

constexpr LogTool kTool{.format = "tegrastats",
                        .name = "tegrastats",
                        .advice = "this board's tegrastats prints no rail that is known"};

bool is_row(std::string_view line) {
  const auto ram = line.find("RAM ");
  return ram != line.npos && ram < 40 && line.find("MB", ram) != line.npos &&
         (line.find("CPU [") != line.npos || line.find("VDD_") != line.npos ||
          line.find("POM_") != line.npos);
}

bool recognises_tegrastats(std::string_view text) {
  for (Lines lines(text); lines.next() && lines.number() <= 5;) {
    if (is_row(lines.text())) return true;
  }
  return false;
}

Result<model::Recording> read_tegrastats(std::span<const SourceText> sources,
                                         const ImportOptions& options) {
  const SourceText& source = sources.front();
  RowLog log(kTool, options);
  log.set_source(source);
  const std::size_t sensor = log.sensor({model::SensorKind::kPowerInstant, "tegrastats (INA3221)"});
  std::size_t most = 0;
  std::string whole;  // the rail of the whole module
  std::set<std::string, std::less<>> others;
  for (Lines lines(source.text); lines.next();) {
    const std::string_view line = trim(lines.text());
    if (line.empty()) continue;
    const auto words = split_blanks(line);
    std::optional<LogTime> time = take_time(words);
    if (!time && !source.line_times.empty()) time = source.line_times[lines.number() - 1];
    std::vector<LogRow> rows;
    bool is_joined = std::ranges::count(words, "RAM") > 1;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const auto* rail = find_rail(words[i]);
      const auto watts = rail || is_rail(words[i]) ? parse_power(words[i + 1]) : std::nullopt;
      if (watts && !rail) others.emplace(words[i]);
      if (!watts || !rail) continue;
      LogRow row;
      row.time = time;
      row.line = lines.number();
      const std::string name(words[i]);
      if (rail->kind == DomainKind::kPlatform) whole = name;
      row.device = log.device(
          name, {rail->kind, rail->kind == DomainKind::kGpu ? "gpu0" : "tegra:" + name, name});
      row.values.emplace_back(sensor, *watts);
      is_joined |= std::ranges::find(rows, row.device, &LogRow::device) != rows.end();
      rows.push_back(std::move(row));
    }
    // Each line has all rails: one that has fewer was cut off, or is a message.
    const bool is_whole =
        log.bad().take(source, lines, {}, log.builder(), [&]() -> std::optional<std::string> {
          if (is_joined) return "it was cut off, and runs into the next row";
          if (!rows.empty() && rows.size() >= most) return std::nullopt;
          if (most == 0) return "none of its words is a known rail with a power in mW after it";
          return "it has not the rails of the lines before";
        });
    if (!is_whole) continue;
    most = rows.size();
    for (LogRow& row : rows) log.add(std::move(row));
  }
  if (auto good = log.bad().check(source, log.rows().size()); !good) return forward_error(good);
  if (!others.empty()) {
    log.builder().warn(
        fmt::format("{} left out that {} neither of the GPU, a CPU, DRAM nor the whole module: {}",
                    counted(others.size(), "rail"), others.size() == 1 ? "is" : "are",
                    fmt::join(others, ", ")));
  }
  if (!whole.empty()) {
    log.builder().warn(whole +
                       " is the power of the whole module: it contains the other rails, and is in "
                       "no total");
  }
  auto recording = std::move(log).finish();
  if (!recording) return recording;
  for (model::Sensor& own : recording->sensors) own.traits.scale = model::scale_of_rail();
  return recording;
}

}  // namespace

extern const Importer kTegrastatsImporter{{"tegrastats", "what 'tegrastats' prints on a Jetson"},
                                          false,
                                          recognises_tegrastats,
                                          read_tegrastats};

}  // namespace jouleprof::importers
