// What `dcgmi dmon -e 155,156,...` prints: a header `#Entity POWER TOTEC ...`, a line of units, and
// rows `GPU 0  120.5  1234567 ...`, one an entity and look. The header comes again from time to
// time. There are no time stamps, unless `ts` wrote one in front of each line.
#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 11> kFields{
    {{"entity", LogRole::kIndex},
     {"dvnam", LogRole::kName},
     {"power", LogRole::kValue, "W", kPowerAverage, "DCGM_FI_DEV_POWER_USAGE", true},
     {"totec", LogRole::kValue, "mJ", kEnergyCounter, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"},
     {"tmptr", LogRole::kValue, "C", kGauge, gauge::kTemperature},
     {"mmtmp", LogRole::kValue, "C", kGauge, gauge::kMemoryTemperature},
     {"smclk", LogRole::kValue, "MHz", kGauge, gauge::kSmClock},
     {"mmclk", LogRole::kValue, "MHz", kGauge, gauge::kMemoryClock},
     {"gputl", LogRole::kValue, "%", kGauge, gauge::kGpuUtilisation},
     {"mcutl", LogRole::kValue, "%", kGauge, gauge::kMemoryUtilisation},
     {"fbusd", LogRole::kValue, "MB", kGauge, gauge::kMemoryUsed}}};

bool is_header(std::string_view line) {
  const auto words = split_blanks(line);
  if (words.size() > 2 && words[0] == "#") return words[1] == "Entity";
  return words.size() > 1 && (words[0] == "#Entity" || words[0] == "Entity");
}

// The entity is two words: "GPU 0".
Cells cells_of(std::string_view line) {
  const auto words = split_blanks(line);
  Cells cells;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "#") continue;
    std::string word(words[i]);
    if (word == "#Entity") word = "Entity";
    const bool is_entity = cells.empty() && i + 1 < words.size() && word != "Entity" &&
                           word != "ID" && word != "Id" && parse_integer(words[i + 1]);
    if (is_entity) word += ' ' + std::string(words[++i]);
    cells.push_back(std::move(word));
  }
  return cells;
}

bool is_units(const Cells& cells) {
  return !cells.empty() && (cells[0] == "ID" || cells[0] == "Id");
}

// A product's name has blanks; no other value has. A row that was cut off and runs into the next
// stays as it is, with too many cells: the name would take all of a row.
void join_name(Cells& cells, const Cells& header) {
  if (cells.empty()) return;
  const std::string entity = cells[0].substr(0, cells[0].find(' '));
  const auto begins = [&](std::size_t i) {
    return i + 1 < cells.size() && cells[i].ends_with(entity) && parse_integer(cells[i + 1]);
  };
  if (runs_into_next(cells, header.size(), begins)) return;
  join_cells(cells, header, "DVNAM");
}

constexpr LogTool kTool{
    .format = "dcgmi",
    .name = "dcgmi",
    .advice = "it has neither POWER nor TOTEC; log with 'dcgmi dmon -e 155,156'",
    .fields = kFields,
    .cells = cells_of,
    .is_header = is_header,
    .is_units = is_units,
    .mend = join_name,
    .has_few_units = true,
    .is_polled_mean = true};

bool recognises_dcgm(std::string_view text) {
  for (Lines lines(text); lines.next();) {
    if (is_header(trim(lines.text()))) return true;
    if (lines.number() > 20) return false;
  }
  return false;
}

Result<model::Recording> read_dcgm(std::span<const SourceText> sources,
                                   const ImportOptions& options) {
  RowLog log(kTool, options);
  if (auto read = log.read(sources.front()); !read) return forward_error(read);
  return std::move(log).finish();
}

}  // namespace

extern const Importer kDcgmImporter{
    {"dcgmi", "what 'dcgmi dmon -e 155,156,...' prints"}, false, recognises_dcgm, read_dcgm};

}  // namespace jouleprof::importers
