// The file in which a service keeps its counters.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/live/energy_accounts.h"
#include "base/file.h"
#include "session/machine/machine_state_fixture.h"
#include "session/machine/service_state.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;
using namespace std::chrono_literals;

namespace {

const std::filesystem::path& file() {
  static const auto path = fuzz_folder() / "state.json";
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto state = session::machine_state({"GPU-0", "GPU-1"});
  analysis::EnergyAccounts accounts(2, {});
  analysis::Worker worker{11, 41, "name", {}};
  worker.owner.job = "7";
  accounts.begin_tick(state.started.host + 5s, {worker});
  const std::vector<double> weights{1};
  accounts.charge({0, Energy::joules(10), 5s, Energy::joules(1), weights, 1});
  session::StateFile kept(file());
  if (!kept.save(session::service_state(state, accounts, "boot"))) std::abort();
  write_seed("state", *read_file(file()));
  accounts.begin_tick(state.started.host + 10s, {worker});
  accounts.charge({0, Energy::joules(10), 5s, Energy::joules(1), weights, 1});
  if (!kept.save(session::service_state(state, accounts, "boot"))) std::abort();
  write_seed("patched", *read_file(file()));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  write_bytes(file(), {reinterpret_cast<const char*>(data), size});
  auto state = session::machine_state({"GPU-0", "GPU-1"});
  analysis::EnergyAccounts accounts(2, {});
  const auto saved = session::StateFile::read(file());
  if (!saved) return 0;
  const auto restored = session::restore_service_state(*saved, "the file", "boot",
                                                       state.snapshot.time, state, accounts);
  if (!restored) return 0;
  // The parts of every family sum to the whole.
  for (const auto family : analysis::kAllFamilies) {
    const auto& account = *accounts.family(family);
    for (std::size_t d = 0; d < 2; ++d) {
      const auto& domain = accounts.domains()[d];
      Energy parts = domain.rest.value_or(Energy{}) + domain.unattributed + account.outside[d] +
                     account.undivided[d] + account.other[d] + account.ended[d];
      for (const auto& [key, entity] : account.entities) {
        if (entity.energies[d]) parts += entity.energies[d]->energy;
      }
      if (state.domains[d].counted && parts != domain.total) std::abort();
    }
  }
  return 0;
}
