#include <fmt/format.h>

#include "apps/cli/control/settings.h"
#include "apps/cli/control/sweep_choices.h"
#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/text.h"
#include "recording/sweep_file.h"
#include "report/cells.h"
#include "report/html/page.h"
#include "report/results/recommendation.h"
#include "report/svg/svg_format.h"
#include "session/sweep/experiment.h"

namespace jouleprof::cli {
namespace {

class RecommendVerb : public Verb {
 public:
  std::string_view name() const override { return "recommend"; }

  void declare(CLI::App& app) override {
    add(app, "FILE", input_.file)->required();
    objective_.declare(app);
    add(app, "--reference", reference_);
    auto* hours = add(app, "--hours", hours_);
    add(app, "--price", costs_.price)->needs(hours);
    add(app, "--carbon", costs_.carbon)->needs(hours);
    add(app, "--profile", profile_);
    auto* page = add(app, "--html", html_);
    add(app, "--redact", redact_)->needs(page);
    add(app, "--svg", svg_);
    add(app, "--json", json_);
  }

  int run(const std::vector<std::string>&) override {
    auto found = read_sweeps();
    const auto options = choices();
    if (!options) return complain(options.error(), kUsageError);
    if (!found) return complain(found.error(), status_of_input(found.error()));
    std::vector<report::AdvisedSweep> sweeps;
    for (auto& sweep : *found) sweeps.push_back({std::move(sweep), fail(Errc::kInternal, "")});
    if (sweeps.empty()) {
      return complain({Errc::kUnavailable,
                       fmt::format("{}: no window has a power limit or a clock, so there is no "
                                   "sweep; measure one with: jouleprof sweep -- COMMAND, or import "
                                   "another tool's with: jouleprof import SWEEP.csv -o sweep.jprof",
                                   input_.file)},
                      kBadContent);
    }
    // The advice refers to its sweep, which stays in place from here on.
    bool any = false;
    for (auto& advised : sweeps) {
      auto choice = options->choice;
      if (!choice.reference && !plan_.command.empty()) {
        choice.reference = session::recommend_options(plan_, advised.sweep).reference;
      }
      advised.advice = analysis::recommend(advised.sweep, choice);
      any = any || advised.advice;
    }
    if (!html_.empty()) {
      const auto page = report::recommendation_to_html(
          sweeps, *options, runs_,
          {JOULEPROF_VERSION, "jouleprof recommend " + report::shell_word(input_.file), redact_});
      if (!page) return complain(page.error(), kInternalError);
      if (const int status = write_file(html_, *page); status != kDone) return status;
    }
    if (const int status = write_files(sweeps); status != kDone) return status;
    const auto written = write_output(
        Output{},
        json_ ? report::recommendation_to_json(sweeps, *options)
              : report::recommendation_to_text(sweeps, *options, text_options(STDOUT_FILENO)));
    if (!written) return complain(written.error(), kCannotWrite);
    return any ? kDone
               : complain(sweeps.front().advice.error(),
                          status_of_input(sweeps.front().advice.error()));
  }

 private:
  // The figure and Zeus's profile, where asked for.
  int write_files(const std::vector<report::AdvisedSweep>& sweeps) const {
    if (profile_.empty() && svg_.empty()) return kDone;
    if (sweeps.size() > 1) {
      return complain_of_usage(
          fmt::format("--svg and --profile take one sweep; {} has {}", input_.file, sweeps.size()));
    }
    if (!profile_.empty()) {
      const auto text = report::recommendation_to_zeus_profile(sweeps.front());
      if (!text) return complain(text.error(), status_of_input(text.error()));
      if (const int status = write_file(profile_, *text); status != kDone) return status;
    }
    return svg_.empty() ? kDone : write_file(svg_, report::sweep_svg(sweeps.front(), runs_));
  }

  int write_file(const std::string& path, const std::string& text) const {
    std::vector<std::string> others{input_.file};
    for (const auto& other : {html_, svg_, profile_}) {
      if (!other.empty() && &other != &path && other != path) others.push_back(other);
    }
    const auto written = write_output({path, true, others}, text);
    return written ? kDone : complain(written.error(), kCannotWrite);
  }

  // Of our own sweep, or in a recording.
  Result<std::vector<analysis::Sweep>> read_sweeps() {
    if (recording::is_sweep_file(input_.file)) {
      auto record = recording::read_sweep(input_.file);
      if (!record) return forward_error(record);
      plan_ = record->plan;
      runs_ = record->runs;
      return std::vector{analysis::sweep_of(record->plan, record->runs)};
    }
    const auto run = input_.open();
    if (!run) return forward_error(run);
    return analysis::sweeps_of(run->recording());
  }

  Result<report::RecommendationOptions> choices() const {
    report::RecommendationOptions options;
    if (!plan_.command.empty()) {
      options.sweep_file = input_.file;
      options.devices = smi_devices(input_.file, plan_);
    }
    model::SweepPlan asked = plan_;
    if (auto set = objective_.set(asked); !set) return forward_error(set);
    options.choice.objective = *analysis::parse_objective(asked.objective);
    options.choice.eta = asked.eta;
    options.choice.max_slowdown = asked.max_slowdown;
    options.choice.max_watts = asked.max_watts;
    options.choice.reference = reference_;
    options.is_other_choice = is_other_choice(options.choice);
    if (!hours_) return options;
    if (*hours_ <= 0 || *hours_ > 24) {
      return fail(Errc::kInvalidArgument, "--hours must be above 0 and at most 24");
    }
    auto costs = costs_.factors();
    if (!costs) return forward_error(costs);
    if (costs->series) {
      return fail(Errc::kInvalidArgument,
                  "--carbon of a recommendation is a number of grams for a kilowatt-hour: the work "
                  "has no hours of the day");
    }
    options.daily = report::DailyUse{*hours_, std::move(costs->price), costs->grams};
    return options;
  }

  // Other than what the plan of our own sweep says, by which `jouleprof apply` chooses.
  bool is_other_choice(const analysis::RecommendOptions& choice) const {
    return choice.reference || choice.objective != analysis::parse_objective(plan_.objective) ||
           choice.eta != plan_.eta || choice.max_slowdown != plan_.max_slowdown ||
           choice.max_watts != plan_.max_watts;
  }

  Input input_;
  model::SweepPlan plan_;  // of our own sweep: what is not given
  ObjectiveChoice objective_;
  std::optional<double> reference_;
  std::optional<double> hours_;
  CostChoice costs_;
  std::vector<model::SweepRun> runs_;
  std::string profile_;
  std::string svg_;
  std::string html_;
  bool redact_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_recommend() { return std::make_unique<RecommendVerb>(); }

}  // namespace jouleprof::cli
