// jouleprof_version, jouleprof_provenance_word, jouleprof_report_* and jouleprof_replay.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "analysis/run.h"
#include "apps/lib/c_interface.h"
#include "jouleprof/jouleprof.h"
#include "model/profile.h"
#include "recording/reader.h"
#include "report/activity/activity.h"
#include "report/format/format.h"

struct jouleprof_report {
  jouleprof::analysis::Run run;
  const jouleprof::model::Profile& profile;  // the run's own
  std::string json;
  std::map<jouleprof::report::ActivityBy, std::string> activity_json;  // computed at first use
};

using jouleprof::lib::checked;
using jouleprof::lib::copy_text;
using jouleprof::lib::fail;
using jouleprof::lib::open_handles;
using jouleprof::lib::refuse;
using jouleprof::lib::to_c;
using jouleprof::lib::without_exceptions;

const char* jouleprof_version(void) { return JOULEPROF_VERSION; }

const char* jouleprof_provenance_word(jouleprof_provenance provenance) {
  switch (provenance) {
    case JOULEPROF_MEASURED:
      return "measured";
    case JOULEPROF_ESTIMATED:
      return "ESTIMATED";
    case JOULEPROF_SIMULATED:
      return "SIMULATED";
    case JOULEPROF_UNAVAILABLE_FIGURE:
      break;
  }
  return "unavailable";
}

jouleprof_status jouleprof_report_open(const char* path, jouleprof_report** report, char* error,
                                       size_t error_size) {
  if (path == nullptr || report == nullptr) {
    return refuse("path and report must not be NULL", error, error_size);
  }
  *report = nullptr;
  return checked(error, error_size, [&] {
    auto recording = jouleprof::recording::read_recording(path);
    if (!recording) return fail(recording.error(), error, error_size);
    jouleprof::analysis::Run run(std::move(*recording));
    const auto& profile = run.profile();
    if (!profile) return fail(profile.error(), error, error_size);
    auto json = jouleprof::report::to_json(*profile);
    auto made = std::make_unique<jouleprof_report>(
        jouleprof_report{std::move(run), *profile, std::move(json), {}});
    open_handles<jouleprof_report>().add(made.get());
    *report = made.release();
    return JOULEPROF_OK;
  });
}

void jouleprof_report_close(jouleprof_report* report) {
  if (!open_handles<jouleprof_report>().remove(report)) return;
  (void)without_exceptions(0, [&] {
    delete report;
    return 0;
  });
}

double jouleprof_report_seconds(const jouleprof_report* report) {
  return report != nullptr ? jouleprof::seconds(report->profile.duration()) : 0;
}

size_t jouleprof_report_domain_count(const jouleprof_report* report) {
  return report != nullptr ? report->profile.domains.size() : 0;
}

jouleprof_status jouleprof_report_domain(const jouleprof_report* report, size_t index,
                                         jouleprof_domain_energy* domain) {
  if (report == nullptr || domain == nullptr || index >= report->profile.domains.size()) {
    return JOULEPROF_INVALID_ARGUMENT;
  }
  const auto& d = report->profile.domains[index];
  *domain = {};
  domain->domain = to_string(d.domain.kind).data();
  domain->device = d.domain.device.c_str();
  domain->name = d.domain.name.c_str();
  domain->reason = d.reason.c_str();
  domain->provenance = JOULEPROF_UNAVAILABLE_FIGURE;
  if (d.energy) {
    domain->provenance = to_c(d.energy->provenance);
    domain->energy_microjoules = d.energy->energy.microjoules();
    domain->error_microjoules = d.energy->error.microjoules();
    domain->repeatability_microjoules = d.energy->repeatability.microjoules();
  }
  return JOULEPROF_OK;
}

const char* jouleprof_report_json(const jouleprof_report* report) {
  return report != nullptr ? report->json.c_str() : "";
}

const char* jouleprof_report_activity_json(jouleprof_report* report, const char* by, char* error,
                                           size_t error_size) {
  if (report == nullptr) {
    copy_text("report must not be NULL", error, error_size);
    return nullptr;
  }
  const auto kind = jouleprof::report::parse_activity_by(by == nullptr ? "" : by);
  if (!kind) {
    copy_text("by must be kernel, layer, range or phase", error, error_size);
    return nullptr;
  }
  auto& json = report->activity_json[*kind];
  if (json.empty()) {
    std::ostringstream text;
    jouleprof::report::FormatOptions options;
    options.by.emplace().by = *kind;
    const auto written =
        jouleprof::report::find_format("json")->write(report->run, {}, options, text);
    if (!written) {
      copy_text(written.error().message, error, error_size);
      return nullptr;
    }
    json = std::move(text).str();
  }
  return json.c_str();
}

// --- Isolated re-runs on request; libjouleprof_inject.so, which recorded the launches, makes them
// ---

namespace {

constexpr double kMostSeconds = 30;  // for all re-runs

using ReplayNow = int(double each, double all, char* said, size_t size);

// Of the library that CUDA has loaded into this process; nullptr: none has.
ReplayNow* replay_now() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  return library != nullptr ? reinterpret_cast<ReplayNow*>(dlsym(library, "jouleprof_replay_now"))
                            : nullptr;
}

}  // namespace

jouleprof_status jouleprof_replay(double seconds, char* said, size_t said_size) {
  ReplayNow* now = replay_now();
  if (now == nullptr) {
    if (said != nullptr && said_size > 0) {
      std::snprintf(said, said_size,
                    "no launches are recorded: run the program under `jouleprof run --kernels "
                    "--replay`");
    }
    return JOULEPROF_UNAVAILABLE;
  }
  return now(seconds, kMostSeconds, said, said_size) == 0 ? JOULEPROF_OK : JOULEPROF_UNAVAILABLE;
}
