// Measures a whole machine for as long as a service runs, and divides its energy among processes
// and what they belong to.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/live/machine_state.h"
#include "meters/meter.h"
#include "session/hub/hub_server.h"
#include "session/live/live_engine.h"
#include "session/machine/folder_reader.h"
#include "session/machine/gpu_uses.h"
#include "session/machine/machine_windows.h"
#include "session/machine/service_state.h"
#include "session/sampling/recorded_sampling.h"
#include "spans/procs/machine_processes.h"
#include "spans/procs/owners.h"

namespace jouleprof::session {

// What a service hands over to the next one of this process, which measures with other meters.
struct Continued {
  std::shared_ptr<const nlohmann::json> counters;  // as service_state() has them
  std::uint64_t ticks = 0;
  ClockPoint started{};
  Duration cpu_at_begin{};
};

struct ShareOptions {
  ShareAccess access;
  Duration fastest = std::chrono::milliseconds{10};  // as HubOptions'
  std::filesystem::path root = "/";
};

struct ServiceOptions {
  Duration tick = std::chrono::seconds{10};
  // Where it is shorter: of the first twelve ticks, and while `is_watched`.
  Duration lively_tick = std::chrono::seconds{5};
  std::function<bool()> is_watched;  // called from the thread of run(); may be empty
  std::vector<std::string> devices;  // as select_devices(); empty: all
  analysis::EnergyAccounts::Options accounts;
  std::filesystem::path job_mapping;  // as spans::JobMapping reads it; empty: none
  std::filesystem::path kube_logs;    // as spans::KubeNameFolder reads it; empty: none
  // The power of a domain at rest; absent where it is not known, and then the domain's energy is
  // not divided into levels.
  std::function<std::optional<Power>(const model::Domain&)> rest;
  // The power of a GPU on which a context is held and nothing runs, rest included. What a board
  // draws up to there above rest is charged to all that hold it, in equal parts; where it is
  // absent, to those that work.
  std::function<std::optional<Power>(const model::Domain&)> held;
  std::filesystem::path state;         // where the counters are kept over restarts; empty: nowhere
  std::optional<Continued> continued;  // instead of what is there
  std::shared_ptr<MachineWindows> windows;  // of the service before; nullptr: its own
  bool has_last_tick = false;               // when it is stopped
  // What an administrator should know when it happens: a board is lost. After on_tick; may be
  // empty.
  std::function<void(const std::string&)> on_event;
  Sink* sink = nullptr;              // of the recording; nullptr: none. It outlives the service
  model::RunInfo run;                // of the recording
  std::filesystem::path root = "/";  // where proc and sys are
  Duration patience = std::chrono::seconds{2};  // with a meter that hangs at the end
  std::optional<ShareOptions> share;            // with local programs; absent: not at all
  meters::Demand demand;                        // that the meters were opened with

  // Called after each tick, from the thread of run(). Both arguments are valid during the call. No
  // counter may leave the process yet.
  std::function<void(const analysis::MachineState&, const analysis::EnergyAccounts&)> on_tick;
  // Whether the counters of each tick are to be kept in the state file; else those of a tick that
  // was requested are, and of one a minute. Called from the thread of run(); empty: they are.
  std::function<bool()> keeps_all;
  // Who reads the counters, for the service that continues this one: after on_tick, with the tick's
  // end. May be empty.
  std::function<std::optional<analysis::MetricsReaders>(HostTime)> readers;
  // After on_tick where they are kept, or there is no such file: the counters may be shown.
  std::function<void(const analysis::MachineState&, const analysis::EnergyAccounts&)> on_kept;
};

// How the energy of a tick is divided:
//  - The part at rest, where it is known, is charged to no process.
//  - CPU packages and DRAM: by CPU time. Time that a control group used and none of its listed
//    processes goes to the group's owner; the rest of the machine's busy time to no entity.
//  - GPUs: as analysis/processes/board_use.h has it. A GPU that the scheduler gave to one job is
//    that job's, also where no process of it is known.
//  - Energy of CPU packages and DRAM that the sensors report later than the tick after is
//    unattributed: nothing is known of when it was used.
//  - Domains within others (gpu_memory, cpu_cores) and those that contain several (platform,
//    module) are counted and not divided.
class MachineService {
 public:
  // Errors: invalid_argument for a device that does not exist.
  static Result<std::unique_ptr<MachineService>> open(
      ServiceOptions options, std::vector<std::unique_ptr<meters::Meter>> meters);

  const std::vector<model::Domain>& domains() const { return sampling_.domains(); }

  // Shares the sensors as ServiceOptions::share says, until run() ends. Before run(). Errors: as
  // HubServer's.
  Result<void> start_sharing();

  // Measures in the calling thread until `stop`. Afterwards its meters are gone.
  void run(std::stop_token stop);
  // After run().
  Continued hand_over() const;

  // Calls `reader` with what is known after the latest tick, which does not change during the call.
  // Thread safety: may be called from any thread.
  using Reader =
      std::function<void(const analysis::MachineState&, const analysis::EnergyAccounts&)>;
  void read(const Reader& reader) const;

  // Ends a tick soon, and keeps it, unless one has ended since `t` or just before: that is kept.
  // The next one follows as long after it as after any. Thread safety: may be called from any
  // thread.
  void request_tick(HostTime t);

  // Windows of other programs, whose energy is computed some tenths of a second after their end.
  MachineWindows& windows() { return *windows_; }
  std::shared_ptr<MachineWindows> shared_windows() { return windows_; }

 private:
  struct Edge {
    std::optional<HostTime> at;  // up to here its energy is counted
    int waited = 0;              // ticks since a gap, until the counter says what was used in it
  };
  struct Division {  // of one tick
    std::vector<analysis::Worker> workers;
    std::vector<double> cpu_time;
    double others = 0;
    std::unordered_map<pid_t, std::size_t> by_pid;
    std::size_t listed =
        0;  // the workers that the look listed; then those that only drivers listed
    struct Use {
      HostTime begin{};
      HostTime end{};
      std::vector<analysis::WorkerClaim> claims;
      std::vector<analysis::WorkerClaim> holders;  // of contexts, in equal parts
    };
    std::map<std::size_t, std::vector<Use>> uses;  // by GPU
    std::map<std::size_t, std::size_t>
        mapped;  // by GPU, a worker of the only job that it was given to
    std::optional<std::uint64_t> memory_used_bytes;
    HostTime looked_at{};  // at all processes
    bool known = false;
  };

  MachineService(ServiceOptions options, Sampler sampler, std::vector<model::Domain> domains);
  std::optional<GpuUses::Found> find(pid_t pid);
  void wait_until(HostTime t, const std::stop_token& stop);
  static Duration process_period();
  HostTime serve_programs();
  void set_pace(const std::optional<HubServer::Pace>& pace);
  void wait_for_lists(HostTime t, const std::stop_token& stop);
  void wait_for_tick(HostTime t, const std::stop_token& stop);
  bool is_tick_wanted() const { return wanted_tick_ > kept_tick_; }  // mutex_ is held
  void settle_windows(const std::stop_token& stop);
  void wait_for_sensors(HostTime t, const std::stop_token& stop);
  void tick(const std::stop_token& stop);
  Duration time_to_next_tick() const;
  Division divide();
  void charge(std::size_t domain, HostTime at, const Division& division);
  void map_jobs(Division& division);
  void read_jobs();
  bool has_new_jobs();
  void read_folders();
  static std::size_t worker_of(const analysis::Worker& worker, Division& division);
  void find_uses(HostTime at, Division& division);
  std::vector<analysis::ChargePart> parts_of(std::size_t domain, HostTime begin, HostTime at,
                                             const std::optional<Power>& rest,
                                             const Division& division);
  void describe(HostTime at);
  void restore();
  bool keeps(HostTime tick);
  void keep();
  void mark_counters(HostTime at);
  void mark_counter(std::size_t domain, HostTime t);
  bool count_by_counter(std::size_t domain, HostTime at, const char* when);
  void note_failures(const std::vector<model::ReadFailure>& failures);
  void watch_boards();

  ServiceOptions options_;
  mutable std::mutex known_;  // guards accounts_ and state_ while run() changes them
  LiveEngine live_;
  GpuUses uses_;
  RecordedSampling sampling_;
  spans::MachineProcesses processes_;
  FolderReader<spans::JobMapping> job_folder_;
  FolderReader<model::KubeNames> kube_folder_;
  spans::JobMapping jobs_;       // since the last tick
  spans::JobMapping next_jobs_;  // at the last look
  HostTime looked_for_jobs_{};
  model::KubeNames names_;  // of pods and containers
  analysis::EnergyAccounts accounts_;
  std::vector<Edge> edges_;
  HostTime last_tick_{};
  HostTime looked_at_{};  // at all processes
  HostTime kept_tick_{};  // the latest that was kept
  analysis::MachineState state_;
  Duration cpu_at_begin_{};
  const bool in_pid_namespace_;
  const std::string boot_;
  std::optional<StateFile> file_;
  std::shared_ptr<MachineWindows> windows_;
  bool has_ended_window_ = false;  // guarded by mutex_
  bool is_asked_ = false;          // by a program; guarded by mutex_
  HostTime wanted_tick_{};         // guarded by mutex_
  bool has_news_ = false;          // as Lane::on_news; guarded by mutex_
  std::mutex mutex_;
  std::condition_variable_any woken_;

  static constexpr int kSilentTicks = 2;  // one may be late
  struct Watched {                        // a domain that was counted
    int silent_ticks = 0;
    std::string failure;  // of a read, since it is silent
  };
  std::vector<Watched> watched_;
  std::vector<std::string> events_;  // of this tick

  std::vector<meters::OfferedDomain> offered_;  // all of the machine
  AskedReads reads_;
  Duration delivery_{};  // between two collections for programs
  HostTime delivered_{};
  std::unique_ptr<HubServer> share_;  // gone before what its thread calls
};

}  // namespace jouleprof::session
