// Where a program gets the energy of its own windows from.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/live/window_totals.h"
#include "base/result.h"
#include "model/domain.h"
#include "model/snapshot.h"
#include "spans/windows/shared_rings.h"

namespace jouleprof::session {

// Thread safety: all functions from any thread. In a forked child nothing is taken in and every
// answer is an error (unavailable).
class EnergySource {
 public:
  using Energies = std::vector<Result<model::Measurement>>;  // by domain

  virtual ~EnergySource() = default;
  EnergySource(const EnergySource&) = delete;
  EnergySource& operator=(const EnergySource&) = delete;

  virtual const std::vector<model::Domain>& domains() const = 0;  // fixed
  // The machine's boards as this program's runtime (CUDA, ROCm) numbers them, among them those that
  // domains() leaves out. Fixed.
  virtual const std::vector<model::DomainId>& visible_boards() const = 0;
  // Whose sampler this is: "own", or "run" when it is that of `jouleprof run` around this program.
  virtual std::string_view kind() const = 0;

  // A number for a window's name, the same for the same text; 0 is the empty name.
  virtual std::uint32_t name(std::string_view text) = 0;
  // A window that has begun: the recording names it if the program ends before it is forgotten, as
  // all are to be that end. Neither waits nor allocates.
  virtual void begin(const spans::OpenWindow& window) noexcept = 0;
  virtual void forget(const spans::OpenWindow& window) noexcept = 0;
  // A window that has ended. Neither waits nor allocates, beyond a thread's first.
  virtual void add(const spans::WindowRecord& window) noexcept = 0;

  // Waits up to `timeout` until the sensors have reported `end`; the answer has what is known by
  // then. Errors: invalid_argument (end before begin), unavailable.
  virtual Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) = 0;
  // All windows of one name together. Errors: not_found (no window of that name), unavailable.
  virtual Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) = 0;
  // What is known now, with energies since the source was opened. Errors: unavailable, timeout.
  virtual Result<model::Snapshot> snapshot() = 0;
  // What the reader of its figures should know, each once. Empty in a forked child.
  virtual std::vector<std::string> warnings() = 0;

 protected:
  EnergySource() = default;

  // Threads of a source do not exist in a forked child, and its locks may be held forever there.
  bool in_forked_child() const noexcept { return getpid() != pid_; }
  // Errors: unavailable, in a forked child.
  Result<void> check_process() const {
    if (!in_forked_child()) return {};
    return fail(Errc::kUnavailable,
                "this monitor was opened before the process forked; open another one in the child");
  }

 private:
  const pid_t pid_ = getpid();
};

}  // namespace jouleprof::session
