#include "report/format/collectives.h"
#include "report/json/json_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::CollectiveTimes;
using model::Measurement;

constexpr const char* kSchema = "jouleprof.collectives/1";

void add_part(Json& to, const std::string& name, bool split, Duration time,
              const std::optional<Measurement>& energy) {
  const bool known = split && energy;
  to[name + "_seconds"] = split ? seconds_json(time) : Json(nullptr);
  to[name + "_joules"] = known ? joules_json(energy->energy) : Json(nullptr);
  to[name + "_interval_joules"] =
      known ? Json::array({joules_json(energy->low()), joules_json(energy->high())})
            : Json(nullptr);
}

void add_times(Json& to, const CollectiveTimes& times) {
  to["calls"] = times.calls;
  to["matched"] = times.matched;
  to["provenance"] = to_string(times.transfer_energy ? times.transfer_energy->provenance
                                                     : model::Provenance::kUnavailable);
  add_part(to, "transfer", times.matched > 0, times.transfer, times.transfer_energy);
  add_part(to, "waiting", times.matched > 0, times.waiting, times.waiting_energy);
  add_part(to, "unsplit", true, times.unsplit, times.unsplit_energy);
}

Json rank_json(const model::CollectiveRank& rank) {
  Json j = Json::object();
  j["rank"] = optional_json(rank.rank.global);
  j["local_rank"] = optional_json(rank.rank.local);
  j["pid"] = rank.pid;
  j["device"] = rank.device;
  add_times(j, rank);
  j["last"] = rank.last;
  j["waited_for_seconds"] = seconds_json(rank.waited_for);
  j["waited_for_joules"] = optional_json(rank.waited_for_energy, joules_json);
  j["kinds"] = Json::array();
  for (const auto& kind : rank.kinds) {
    Json k = Json::object();
    k["name"] = text_json(kind.name);
    add_times(k, kind);
    j["kinds"].push_back(std::move(k));
  }
  return j;
}

}  // namespace

std::string collectives_to_json(const model::CollectiveProfile& profile) {
  Json j = Json::object();
  j["schema"] = kSchema;
  const auto* straggler = profile.straggler();
  j["slowest_rank"] = straggler != nullptr ? optional_json(straggler->rank.global) : Json(nullptr);
  j["end_spread_seconds"] = optional_json(profile.end_spread, seconds_json);
  j["ranks"] = Json::array();
  for (const auto& rank : profile.ranks) j["ranks"].push_back(rank_json(rank));
  j["warnings"] = profile.problems;
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
