#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "analysis/run.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/gzip/gzip.h"
#include "base/say.h"
#include "base/text.h"
#include "importers/torch/torch_trace.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/chrome/torch_annotator.h"
#include "report/figures.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

// The part of the recording that the trace covers, extended by `more` at both ends. Activity
// outside it was not traced, so power there cannot be attributed.
analysis::Part part_of(const model::Recording& recording, const model::ProfiledTrace& trace,
                       Duration more) {
  const HostTime begin = trace.clocks.to_host(trace.begin) - more;
  const HostTime end = trace.clocks.to_host(trace.end) + more;
  analysis::Part part;
  if (const auto work = recording.run.work_begin) {
    // A part counts from the work's begin, so it cannot begin earlier.
    if (begin > *work) part.from = begin - *work;
    if (end > *work) part.to = end - *work;
  }
  return part;
}

std::vector<report::CounterTrack> tracks_of(const analysis::Run& run,
                                            const model::ProfiledTrace& trace) {
  const analysis::Part part = part_of(run.recording(), trace, 100ms);
  std::vector<report::CounterTrack> tracks;
  for (auto& curve : report::power_curves(run, part, 20ms)) {
    const auto& domains = run.recording().domains;
    const auto& domain = *std::ranges::find(domains, curve.domain, &model::Domain::id);
    tracks.push_back({report::power_track_name(run.recording(), domain), std::move(curve.steps)});
  }
  return tracks;
}

class AnnotateVerb : public Verb {
 public:
  std::string_view name() const override { return "annotate"; }

  void declare(CLI::App& app) override {
    add(app, "TRACE", trace_)->required();
    add(app, "--power", power_)->required();
    add(app, "--output", output_)->required();
    add(app, "--force", force_);
  }

  int run(const std::vector<std::string>&) override {
    const Output output{output_, force_, {trace_, power_}};
    if (auto possible = check_output(output); !possible) {
      return complain(possible.error(), kCannotWrite);
    }
    auto recording = recording::read_recording(power_);
    if (!recording) return complain(recording.error(), status_of_input(recording.error()));
    auto trace = importers::TorchTrace::read(trace_, *recording);
    if (!trace) return complain(trace.error(), status_of_input(trace.error()));
    const model::ProfiledTrace& profiled = trace->profiled();
    recording->traces = {profiled.trace};
    const analysis::Run run(std::move(*recording));
    const auto& profiles = run.activity(part_of(run.recording(), profiled, {}));
    if (!profiles) return complain(profiles.error(), status_of_input(profiles.error()));

    const auto tracks = tracks_of(run, profiled);
    report::TorchAnnotator annotator(profiled, *profiles, tracks, JOULEPROF_VERSION);
    Result<void> read;
    const auto annotate = [&](std::ostream& out) {
      read = trace->for_each_piece([&](const model::TracePiece& piece) {
        annotator.write(out, piece);
        return out.good();
      });
    };
    const auto written = write_output(output, [&](std::ostream& out) {
      if (!names_gzip(output_)) {
        annotate(out);
        return read.has_value();
      }
      GzipStream packed(out);
      annotate(packed);
      packed.finish();
      return read.has_value();
    });
    if (!written) return complain(written.error(), kCannotWrite);
    if (!read) return complain(read.error(), status_of_input(read.error()));
    summarise(profiled, *profiles, annotator.annotation());
    return kDone;
  }

 private:
  void summarise(const model::ProfiledTrace& trace,
                 const std::vector<model::ActivityProfile>& profiles,
                 const report::TorchAnnotation& made) const {
    const auto note = [](const std::string& text) {
      say("jouleprof: note: {}\n", report::printable(text));
    };
    if (trace.cut_off) {
      note(fmt::format("{} is cut off; it is annotated up to its last complete event", trace_));
    }
    if (trace.broken_text + trace.control_characters > 0) {
      note(
          fmt::format("{} holds {} of names that are no UTF-8, which become U+FFFD, and {}, which "
                      "become escapes: else no JSON reader takes it",
                      trace_, counted(trace.broken_text, "piece"),
                      counted(trace.control_characters, "control character")));
    }
    if (trace.launches.empty()) {
      note(
          "the trace holds no GPU activity, so only power tracks are added; record it with "
          "ProfilerActivity.CUDA to get energies");
    }
    if (made.without_energy > 0) {
      note(
          fmt::format("{} of {} kernels have no energy: the recording does not cover their time or "
                      "their GPU, or the trace has no duration of them",
                      made.without_energy, trace.launches.size()));
    }
    for (const auto& profile : profiles) {
      for (const auto& warning : profile.warnings) note(warning);
    }
    say("jouleprof: wrote {} with the energy of {} kernels and {} operators; open it in "
        "ui.perfetto.dev\n",
        report::printable(output_), made.kernels, made.ranges);
  }

  std::string trace_;
  std::string power_;
  std::string output_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_annotate() { return std::make_unique<AnnotateVerb>(); }

}  // namespace jouleprof::cli
