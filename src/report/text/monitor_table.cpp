#include "report/text/monitor_table.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "report/cells.h"
#include "report/json/json_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr std::size_t kDeviceWidth = 12;

std::string cell(const std::optional<double>& value, double scale, int decimals) {
  if (!value || !std::isfinite(*value)) return "-";
  return fixed_decimal(*value * scale, decimals);
}

std::string table_line(std::string_view time, std::string_view device, std::string_view power,
                       std::string_view energy, std::string_view use, std::string_view memory,
                       std::string_view temperature, std::string_view clock,
                       std::string_view provenance) {
  std::string line = fmt::format("{:<12} {} {:>8} {:>9} {:>5} {:>9} {:>5} {:>6}  {}", time,
                                 pad_right(fit(device, kDeviceWidth), kDeviceWidth), power, energy,
                                 use, memory, temperature, clock, provenance);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string monitor_table_header() {
  return table_line("time", "device", "power W", "energy", "use %", "memory", "deg C", "MHz", "");
}

std::string monitor_table_rows(const Snapshot& snapshot) {
  std::string text;
  for (const DeviceSnapshot& d : snapshot.devices) {
    const bool has_memory = d.memory_used_bytes && *d.memory_used_bytes >= 0;
    text += table_line(
        local_clock_text(snapshot.time, 3), printable(d.device), cell(d.power_watts, 1, 1),
        d.energy ? energy_text(*d.energy) : "-", cell(d.utilisation_ratio, 100, 0),
        has_memory ? bytes_text(static_cast<std::uint64_t>(*d.memory_used_bytes)) : "-",
        cell(d.temperature_celsius, 1, 0), cell(d.sm_clock_hertz, 1e-6, 0),
        provenance_word(d.provenance));
  }
  return text;
}

std::string monitor_csv_header() {
  std::string line =
      "time,time_unix_seconds,elapsed_seconds,domain,device,name,provenance,energy_joules";
  for (const auto& field : snapshot_fields()) line += ',' + std::string(field.name);
  return line + '\n';
}

std::string monitor_csv_rows(const Snapshot& snapshot) {
  std::string text;
  for (const DeviceSnapshot& d : snapshot.devices) {
    text += utc_text(snapshot.time) + ',' + seconds_decimal(snapshot.time.time_since_epoch()) +
            ',' + seconds_decimal(snapshot.elapsed) + ',' + std::string(to_string(d.kind)) + ',' +
            csv_field(printable(d.device)) + ',' + csv_field(printable(d.name)) + ',' +
            std::string(to_string(d.provenance)) + ',' +
            (d.energy ? joules_decimal(*d.energy) : "");
    for (const auto& field : snapshot_fields()) {
      const auto& value = d.*field.value;
      text += ',' + (value && std::isfinite(*value) ? shortest(*value) : "");
    }
    text += '\n';
  }
  return text;
}

std::string monitor_json_line(const Snapshot& snapshot) {
  Json line;
  line["schema"] = "jouleprof.snapshot/1";
  line["time"] = utc_text(snapshot.time);
  line["time_unix_seconds"] = seconds_json(snapshot.time.time_since_epoch());
  line["elapsed_seconds"] = seconds_json(snapshot.elapsed);
  line["devices"] = Json::array();
  for (const DeviceSnapshot& d : snapshot.devices) {
    Json device;
    device["domain"] = to_string(d.kind);
    device["device"] = d.device;
    device["name"] = text_json(d.name);
    device["provenance"] = to_string(d.provenance);
    device["energy_joules"] = optional_json(d.energy, joules_json);
    for (const auto& field : snapshot_fields()) {
      const auto& value = d.*field.value;
      const bool has = value && std::isfinite(*value);
      device[std::string(field.name)] = has ? decimal(shortest(*value)) : Json(nullptr);
    }
    line["devices"].push_back(std::move(device));
  }
  return write_json(line, 0) + '\n';
}

}  // namespace jouleprof::report
