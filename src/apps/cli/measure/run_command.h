// The runs of `jouleprof run`: the command's status, kept where something else goes wrong; its
// place among the processes of a job; several runs and what they have in common.
#pragma once

#include <signal.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/total.h"
#include "session/run/job_recorder.h"

namespace jouleprof::cli {

// Becomes the command, because the job matters more than its measurement. Returns only where that
// fails: the exit status.
int run_unmeasured(const std::vector<std::string>& command, const Error& why);

// After the command has ended: while one exists, an interruption ends the tool with the command's
// status. The first one does not: it is taken for a key that was held too long.
class KeepStatus {
 public:
  explicit KeepStatus(int status);
  KeepStatus(const KeepStatus&) = delete;
  KeepStatus& operator=(const KeepStatus&) = delete;
  ~KeepStatus();

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

// --- `jouleprof run` as one of the processes of a job on a host ---

// What this process is: the job's recorder on this host, a member of its session, or alone.
struct JobPlace {
  std::optional<session::RecorderLock> lock;
  std::optional<session::Membership> membership;
};

// Waits up to a minute while the recorder starts. Where it cannot be joined, says so on stderr; the
// process is then alone.
JobPlace find_job_place();

// Finds the place of the running command of a member whose recorder died. Says nothing, and waits
// for a short time only.
JobPlace find_next_place(pid_t command);

// Runs the command as a member. Returns the exit status. `traced`: the user asked for kernels or
// layers.
int run_as_member(const std::vector<std::string>& command, session::Membership membership,
                  bool traced, bool quiet, const session::Succeed& succeed);

// --- `run --repeat` ---

struct RepeatedRun {
  // The command's, or that of all devices: also where what may be the command's, of no known
  // process, is so much that neither of its ends is its energy. Absent: unknown.
  std::optional<report::Quoted> energy;
  std::optional<report::Quoted> whole;  // of all devices
  bool is_undecided = false;            // `energy` is of all devices for that reason
  std::vector<std::string> domains;     // that these energies are of
  std::vector<std::string> lost;        // GPUs without an energy
  double seconds = 0;

  static RepeatedRun of(const model::Profile& profile, bool whole_machine);
};

// "run 2 of 5: 10.31 J, 1.203 s"
std::string progress_text(const RepeatedRun& run, std::size_t number, std::size_t of);

// Mean, standard deviation and range of energy and time; with units and factors, of one unit and in
// money and carbon, by the mean. The interval of the mean energy holds the spread of the runs
// (Student's t) and the error that the sensors have in all of them. Runs whose energy is not known,
// or not of all domains that another run's is of, are not in its mean, and are counted.
std::string repeats_to_text(const std::vector<RepeatedRun>& runs,
                            const std::optional<report::UnitCount>& unit,
                            const report::CostFactors& factors, const report::TextOptions& text);

}  // namespace jouleprof::cli
