// What verbs share that measure: the options of measuring, where the recording goes, and what
// tracing kernels and layers needs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/all/open_meters.h"
#include "model/activity/activity_profile.h"
#include "model/process/process.h"
#include "model/recording.h"
#include "recording/kernel_store.h"
#include "session/run/session.h"
#include "session/sampling/recording_sink.h"

namespace jouleprof::cli {

// The file a recording goes to, or memory where there is none.
class Destination {
 public:
  // In memory alone.
  Destination() = default;
  // A file that is replaced stays until the work begins. Errors: as Writer::create's.
  static Result<Destination> file(const std::filesystem::path& path, bool overwrite);

  session::Sink& sink();
  const std::filesystem::path& path() const { return path_; }  // empty: in memory
  // After the session: the path, or empty where no file has what was recorded.
  std::filesystem::path kept() const;
  // What was recorded, once the session has ended. Errors: as read_recording's.
  Result<model::Recording> recording() const;
  void remove();  // the file, where nothing was measured; an old one stays

 private:
  std::filesystem::path path_;
  std::unique_ptr<session::RecordingSink> file_;
  std::shared_ptr<session::MemorySink> memory_;
};

// A name for the recording of `command`, after its script or program, that no file has yet:
// "train.jprof", then "train-2.jprof", ...
std::filesystem::path default_recording_name(const std::vector<std::string>& command);

// A name that no file has yet: "x.jprof" becomes "x-2.jprof", then "x-3.jprof", ...
std::filesystem::path next_name(const std::filesystem::path& path);
// Whether `name` is `path` itself or one that next_name() made of it.
bool is_name_of(const std::filesystem::path& name, const std::filesystem::path& path);

// How often processes on GPUs are wanted: as session::SessionOptions'.
inline constexpr Duration kProcessPeriod = std::chrono::milliseconds{900};

// Which sensors are read, and how: --devices, --cpu-tdp, --guest-file, --wall-meter, --no-service.
// A verb has those that its text lists.
struct SensorChoice {
  std::vector<std::string> devices;  // of the session: the others are read all the same
  std::string cpu_tdp;
  std::string guest_file;
  std::vector<std::string> wall_meters;
  bool no_service = false;

  void declare(CLI::App& app);
  // What the meters of all devices are opened with. The sensors of a running service may be used,
  // but not with --no-service, nor with --cpu-tdp or --guest-file, which are options of the program
  // that reads the sensors. Errors: invalid_argument.
  Result<meters::MeterOptions> meters(const meters::Demand& demand) const;
};

// --- What runs remember of kernels, from one run to the next ---

// The store of this user: next to the calibration. Empty: there is no folder for it.
std::filesystem::path kernel_store_path();

// A failure prints a warning; the run goes on without memory.
class KernelMemory {
 public:
  // `driver`: of the GPUs; empty: nothing is remembered.
  explicit KernelMemory(const std::string& driver);

  // Gives the recording what earlier runs know of its kernels, and adds that to its file, so that
  // every later report has the same figures. `file` may be empty: there is none.
  void recall(model::Recording& recording, const std::filesystem::path& file) const;
  // Stores what the run resolved by its own readings.
  void store(const std::vector<model::ActivityProfile>& activity) const;

 private:
  bool enabled_;
  recording::KernelStore store_;
};

// The name of a recording with what differs among the processes of a job.
// `pattern` with %h (host), %p (process id of the tool), %j (Slurm's number of the job), %r (rank)
// and %% replaced. Errors: invalid_argument for another letter, and where job or rank are not
// known.
Result<std::string> output_name(const std::string& pattern, const std::string& host,
                                const model::Rank& rank);

// --- The option --append: the recording becomes a further part of a file ---

// Where a recording is kept.
struct KeptRecording {
  std::filesystem::path path;  // empty: nowhere
  std::size_t run = 0;         // its number in the file; 0: it is all of it

  // " train.jprof --run 3", for a command line; empty where it is not kept.
  std::string words() const;
};

class AppendChoice {
 public:
  std::string file;  // as given; empty: not chosen

  // Where to write meanwhile: `file`, where it does not exist yet; else a new name next to it.
  // Errors: as recording::check_appendable's.
  Result<std::string> output() const;

  // Moves what was recorded into `file`. Where that fails, it stays under its own name, and stderr
  // has the reason and how to merge it.
  KeptRecording conclude(const Destination& destination, bool quiet) const;
};

// --- What tracing kernels and layers needs ---

// What --replay without a time means: how long each kind of layer and kernel runs in isolation.
inline constexpr const char* kReplay = "0.4s";
// Seconds. Errors: invalid_argument.
Result<double> parse_replay(const std::string& text);

// Sets the library and the folder that traced programs load. Errors: not_found.
Result<void> find_trace_files(session::TraceOptions& trace);

// By their kernels, or by CPU time where there can be none.
void choose_clock_of_layers(const meters::MeterSet& found, session::SessionOptions& options);

}  // namespace jouleprof::cli
