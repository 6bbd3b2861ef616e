#include "session/windows/energy_json.h"

#include <cmath>
#include <utility>

#include "model/provenance.h"

namespace jouleprof::session {
namespace {

using nlohmann::json;
using Fields = JsonFields;

std::int64_t nanoseconds(HostTime t) { return t.time_since_epoch().count(); }

json domain_json(const model::DomainSnapshot& d) {
  Result<model::Measurement> energy = fail(Errc::kUnavailable, d.reason);
  if (d.energy) energy = *d.energy;
  json object = to_json(DomainEnergy{d.domain.id, std::move(energy)});
  object["provenance"] = model::to_string(d.provenance);
  object["begin"] = nanoseconds(d.energy_begin);
  object["end"] = nanoseconds(d.energy_end);
  if (d.power && std::isfinite(d.power->watts())) object["watts"] = d.power->watts();
  if (d.age) object["age"] = d.age->count();
  json gauges = json::object();
  for (const auto& [name, value] : d.gauges) {
    if (std::isfinite(value)) gauges[name] = value;
  }
  object["gauges"] = std::move(gauges);
  return object;
}
model::DomainSnapshot domain_snapshot_of(Fields& fields) {
  model::DomainSnapshot d;
  auto energy = domain_energy_of(fields);
  d.domain.id = energy.domain;
  if (energy.energy) {
    d.energy = std::move(*energy.energy);
  } else {
    d.reason = energy.energy.error().message;
  }
  d.provenance = fields.named("provenance", &model::parse_provenance);
  if (d.energy) d.energy->provenance = d.provenance;
  d.energy_begin = fields.time("begin");
  d.energy_end = fields.time("end");
  if (fields.has("watts")) d.power = Power::watts(fields.number("watts"));
  if (fields.has("age")) d.age = Duration{fields.integer("age")};
  for (auto& [name, value] : fields.numbers("gauges")) d.gauges[name] = value;
  return d;
}

}  // namespace

void put(json& object, const Error& error) {
  object["code"] = static_cast<int>(error.code);
  object["message"] = error.message;
}
json to_json(const DomainEnergy& e) {
  json object{{"domain", static_cast<std::uint32_t>(e.domain)}};
  if (!e.energy) {
    put(object, e.energy.error());
    return object;
  }
  object["energy"] = e.energy->energy.microjoules();
  object["error"] = e.energy->error.microjoules();
  object["repeatability"] = e.energy->repeatability.microjoules();
  object["provenance"] = model::to_string(e.energy->provenance);
  object["sensor"] = e.energy->sensor;
  object["method"] = e.energy->method;
  return object;
}
void put(json& object, const model::Snapshot& snapshot) {
  object["time"] = snapshot.time.time_since_epoch().count();
  object["begin"] = nanoseconds(snapshot.begin);
  object["elapsed"] = snapshot.elapsed.count();
  json domains = json::array();
  for (const auto& domain : snapshot.domains) domains.push_back(domain_json(domain));
  object["domains"] = std::move(domains);
}
Error error_of(Fields& fields) {
  return {Errc{static_cast<int>(fields.integer("code", 0, static_cast<int>(Errc::kInternal)))},
          fields.text("message")};
}

DomainEnergy domain_energy_of(Fields& fields) {
  const model::DomainId domain{fields.id("domain")};
  if (fields.has("code")) return {domain, tl::unexpected(error_of(fields))};
  model::Measurement m;
  m.energy = fields.energy("energy");
  m.error = fields.energy("error");
  m.repeatability = fields.energy("repeatability");
  m.provenance = fields.named("provenance", &model::parse_provenance);
  m.sensor = fields.text("sensor");
  m.method = fields.text("method");
  return {domain, std::move(m)};
}

model::Snapshot snapshot_of(Fields& fields) {
  model::Snapshot snapshot;
  snapshot.time = RealTime{Duration{fields.integer("time")}};
  snapshot.begin = fields.time("begin");
  snapshot.elapsed = Duration{fields.integer("elapsed", -JsonFields::kMost)};
  for (const json& item : fields.list("domains")) {
    Fields domain(item);
    snapshot.domains.push_back(domain_snapshot_of(domain));
    fields.include(domain);
  }
  return snapshot;
}

}  // namespace jouleprof::session
