#include "report/html/process_slices_json.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr std::int64_t kMostUnits = 100'000;  // five digits of the greatest slice

}  // namespace

Json process_slices_json(const model::ProcessSlices& slices, const model::Profile& profile,
                         HostTime origin) {
  Json j = Json::object();
  j["begin_seconds"] = seconds_json(slices.begin - origin);
  j["step_seconds"] = seconds_json(slices.step);
  j["count"] = slices.count;
  j["energy"] = Json::array();
  j["cpu"] = Json::array();
  std::map<model::ProcessId, std::size_t> places;
  for (const auto& p : profile.processes) places.try_emplace(p.process.id, places.size());
  for (const auto& row : slices.rows) {
    const auto place = places.find(row.process);
    if (place == places.end()) continue;
    std::int64_t greatest = 0;
    for (const Energy e : row.energies) greatest = std::max(greatest, std::abs(e.microjoules()));
    std::int64_t unit = 1;
    while (greatest >= kMostUnits * unit) unit *= 10;
    Json energies = Json::array();
    for (const Energy e : row.energies) {
      energies.push_back(
          std::llround(static_cast<double>(e.microjoules()) / static_cast<double>(unit)));
    }
    j["energy"].push_back({place->second, static_cast<std::uint32_t>(row.domain), unit, row.first,
                           std::move(energies)});
  }
  for (const auto& row : slices.cpu_times) {
    const auto place = places.find(row.process);
    if (place == places.end()) continue;
    Json times = Json::array();
    for (const Duration t : row.times) times.push_back(std::llround(1e3 * seconds(t)));
    j["cpu"].push_back({place->second, row.first, std::move(times)});
  }
  return j;
}

}  // namespace jouleprof::report
