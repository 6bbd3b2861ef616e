#include <algorithm>

#include "report/json/json_text.h"
#include "report/quantity.h"
#include "report/results/bench.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using analysis::BenchEnergy;

constexpr const char* kSchema = "jouleprof.bench/1";

// Nine decimals: one token may take less than a microjoule.
Json small_json(double joules) { return decimal(fixed_decimal(joules, 9)); }

Json per_json(const std::optional<JoulesPer>& j) {
  if (!j) return nullptr;
  Json out = Json::object();
  out["energy_joules"] = small_json(j->joules);
  out["interval_joules"] = Json::array({small_json(j->low()), small_json(j->high())});
  out["repeatability_joules"] = small_json(j->repeatability);
  out["provenance"] = to_string(j->provenance);
  return out;
}

Json row_json(const BenchRow& row) {
  Json j = Json::object();
  j["phase"] = text_json(row.phase);
  j["unit"] = row.unit;
  j["count"] = number_json(row.count);
  j["device"] = per_json(row.device);
  j["total"] = per_json(row.total);
  j["rest"] = per_json(row.rest);
  j["held"] = per_json(row.held);
  j["active"] = per_json(row.active);
  return j;
}

Json gauge_json(const std::optional<analysis::GaugeSummary>& g) {
  if (!g) return nullptr;
  return {
      {"mean", number_json(g->mean)}, {"low", number_json(g->low)}, {"high", number_json(g->high)}};
}

Json energy_json(const model::BenchCase& bench, const BenchEnergy& energy) {
  Json j = Json::object();
  // The same object as that of `report --json` for this part of the run.
  j["profile"] = Json::parse(to_json(energy.profile));
  j["per"] = Json::array();
  for (const auto& row : bench_rows(bench, energy)) j["per"].push_back(row_json(row));
  j["sm_clock_hertz"] = gauge_json(energy.sm_clock);
  j["temperature_celsius"] = gauge_json(energy.temperature);
  j["clock_limits"] = nullptr;
  if (energy.limits) {
    j["clock_limits"] = Json::array();
    for (const auto& limit : *energy.limits) {
      j["clock_limits"].push_back(
          {{"name", limit.name}, {"share_ratio", number_json(limit.share)}});
    }
  }
  return j;
}

}  // namespace

std::string bench_to_json(const model::BenchDocument& document,
                          const std::vector<BenchResult>& results) {
  Json j = Json::object();
  j["schema"] = kSchema;
  j["versions"] = document.versions;
  j["cases"] = Json::array();
  for (const auto& result : results) {
    Json entry = Json::parse(result.bench.document);
    entry["energy"] = result.energy ? energy_json(result.bench, *result.energy) : Json(nullptr);
    entry["energy_reason"] = result.energy ? Json(nullptr) : Json(result.energy.error().message);
    j["cases"].push_back(std::move(entry));
  }
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
