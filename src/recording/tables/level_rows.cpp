#include "recording/tables/level_rows.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

constexpr const char* kRest = "rest";
constexpr const char* kHeld = "held";

bool storable(const model::KnownLevel& level) {
  return level.power > Power{} && storable_power(level.power.watts()) && level.spread >= Power{} &&
         storable_power(level.spread.watts()) &&
         std::abs(level.observed.time_since_epoch().count()) <= kLargestInteger;
}

model::KnownLevel read_level(Rows& row) {
  model::KnownLevel level;
  level.power = row.power();
  if (level.power <= Power{}) row.complain("is not above 0");
  level.spread = row.power();
  if (level.spread < Power{}) row.complain("is negative");
  level.temperature_celsius = row.maybe(&Rows::number);
  level.observed = row.real_time();
  return level;
}

}  // namespace

void LevelRows::replace(const model::Domain& domain) {
  forget_.bind(1, static_cast<std::int64_t>(domain.id));
  forget_.exec();
  forget_.reset();
  add(domain.id, kRest, domain.known_levels.rest);
  add(domain.id, kHeld, domain.known_levels.held);
}

void LevelRows::add(model::DomainId domain, const char* name,
                    const std::optional<model::KnownLevel>& level) {
  if (!level || !storable(*level)) return;
  insert_(domain, std::string_view(name), level->power, level->spread, level->temperature_celsius,
          level->observed);
}

void read_levels(SQLite::Database& db, Inspection& inspection, const Ids& known,
                 std::vector<model::Domain>& domains) {
  for (Rows row(db, inspection, "board_level"); row.next();) {
    const auto id = row.reference<model::DomainId>(known);
    const std::string name = row.text();
    if (name != kRest && name != kHeld) row.complain("has an unknown value");
    const auto domain = std::find_if(domains.begin(), domains.end(),
                                     [id](const model::Domain& d) { return d.id == id; });
    if (domain == domains.end()) return;  // which is a problem by now
    auto& level = name == kRest ? domain->known_levels.rest : domain->known_levels.held;
    if (level) row.complain("is there twice");
    level = read_level(row);
  }
}

}  // namespace jouleprof::recording
