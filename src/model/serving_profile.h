// The energy of each request of an inference server, and what of a board's energy is of none.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"
#include "model/profile.h"

namespace jouleprof::model {

// The active energy of requests: above rest and held. Half-widths are of 95 % intervals.
struct ServedEnergy {
  Energy energy;       // the fair share: own part, and equal parts of what is fixed in each step
  Energy calibration;  // half-width: the sensor's gain, the same for all requests
  Energy regression;   // half-width: the model of a step's energy
  // Without the request this would be saved: its own part, and what is fixed in the steps that were
  // its own alone. From here to `energy` reaches the choice of a rule of division.
  Energy marginal;
  Energy prefill;  // prefill + decode == energy
  Energy decode;
  Energy recomputed;  // of the energy: computed again after a preemption
  Energy rejected;    // of the energy: speculative tokens that were rejected
  Energy idle_share;  // not of the energy: rest and held during its steps, in equal parts

  std::uint64_t tokens_in = 0;
  std::uint64_t tokens_out = 0;
  std::uint64_t computed = 0;  // tokens, those that were rejected or computed again included
  std::uint64_t cached = 0;    // tokens taken from the prefix cache: their filler paid for them
  std::uint64_t steps = 0;
  double shared_with = 0;  // other requests in its steps, mean over time

  Energy error() const {
    return Energy::joules(std::hypot(calibration.joules(), regression.joules()));
  }
  Energy low() const { return std::max(energy - error(), Energy{}); }
  Energy high() const { return energy + error(); }
};

struct RequestEnergy : ServedEnergy {
  std::string id;
  std::string model;
  std::string tenant;
  std::string filler;  // the id of the request that filled the prefix cache for it; empty: unknown
  pid_t pid = 0;
  HostTime arrival{};
  std::optional<HostTime> finish;   // absent: it had not finished when the recording ended
  std::optional<RealTime> arrived;  // absent: the recording has no wall clock
};

struct TenantEnergy : ServedEnergy {
  std::string tenant;
  std::uint64_t requests = 0;
};

// One board: energy == idle_levels + between + requests + unattributed, exactly.
struct ServedBoard {
  Domain domain;
  Measurement measured;
  std::optional<Energy> rest;  // rest + held == idle_levels where both are known
  std::optional<Energy> held;
  Energy idle_levels;
  Energy between;  // above held, between steps: of no request
  Energy requests;
  Energy unattributed;  // before the first and after the last step, and what no step explains
  Energy others;        // of the unattributed: other programs used it, or can have used it
  std::uint64_t steps = 0;
  Duration busy{};       // in steps
  double explained = 0;  // R^2 of the regression
  // The model of a step: what its parts cost. Active watts of a step's time; joules.
  double step_watts = 0;
  double joules_per_prefill_token = 0;
  double joules_per_decode_token = 0;
  double fixed_joules = 0;  // of a step of mean length
};

struct ServingProfile {
  std::vector<ServedBoard> boards;
  std::vector<RequestEnergy> requests;  // in order of their arrival
  std::vector<TenantEnergy> tenants;    // most energy first
  bool in_flight = false;  // a proxy saw tokens, and no batches: its spans of time are the steps
  Provenance provenance = Provenance::kUnavailable;
  std::vector<std::string> warnings;
};

}  // namespace jouleprof::model
