#include "importers/dmon/dmon_header.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::importers {
namespace {

constexpr std::array<DmonColumn, 13> kColumns{{{"pwr", "W", DmonField::kPower},
                                               {"gtemp", "C", DmonField::kTemperature},
                                               {"temp", "C", DmonField::kTemperature},
                                               {"mtemp", "C", DmonField::kMemoryTemperature},
                                               {"sm", "%", DmonField::kSm},
                                               {"mem", "%", DmonField::kMemory},
                                               {"enc", "%", DmonField::kEncoder},
                                               {"dec", "%", DmonField::kDecoder},
                                               {"jpg", "%", DmonField::kJpeg},
                                               {"ofa", "%", DmonField::kOfa},
                                               {"mclk", "MHz", DmonField::kMemoryClock},
                                               {"pclk", "MHz", DmonField::kSmClock},
                                               {"fb", "MB", DmonField::kFrameBuffer}}};

}  // namespace

std::vector<std::string_view> dmon_fields(std::string_view line) {
  if (line.find(',') == std::string_view::npos) return split_blanks(line);
  auto fields = split(line, ',');
  for (auto& field : fields) field = trim(field);
  return fields;
}

std::string_view without_hash(std::string_view line) {
  line = trim(line);
  if (line.starts_with('#')) line.remove_prefix(1);
  return line;
}

std::optional<DmonHeader> parse_dmon_header(std::string_view line) {
  const bool hash = trim(line).starts_with('#');
  if (!hash && line.find(',') == std::string_view::npos) return std::nullopt;
  // Before splitting: a capture has a hundred thousand other lines.
  const std::string_view start = trim(without_hash(line));
  if (!start.starts_with('g') && !start.starts_with('D') && !start.starts_with('T') &&
      !start.starts_with('d') && !start.starts_with('t')) {
    return std::nullopt;
  }
  DmonHeader header;
  const auto fields = dmon_fields(without_hash(line));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [word, unit] = split_unit(fields[i]);
    const std::string name = lower_case(word);
    header.columns.push_back(nullptr);
    if (!header.gpu) {
      if (name == "date" && !header.date) {
        header.date = i;
      } else if (name == "time" && !header.time) {
        header.time = i;
      } else if (name == "gpu") {
        header.gpu = i;
      } else {
        return std::nullopt;
      }
      continue;
    }
    if (name == "pid") header.is_pmon = true;
    if (name == "mig" || name == "gi" || name == "ci") header.has_instances = true;
    const auto known = std::find_if(kColumns.begin(), kColumns.end(),
                                    [&](const DmonColumn& c) { return c.name == name; });
    if (known == kColumns.end()) continue;
    if (!unit.empty() && unit != known->unit) header.wrong_unit = fields[i];
    header.columns.back() = &*known;
  }
  // "# gpu capture" in some other text is a title, not a header.
  const bool any = std::any_of(header.columns.begin(), header.columns.end(),
                               [](const DmonColumn* c) { return c != nullptr; });
  if (!header.gpu || (!any && !header.is_pmon)) return std::nullopt;
  return header;
}

}  // namespace jouleprof::importers
