#include "apps/cli/files/activity_choice.h"

#include <fmt/format.h>

#include "apps/cli/options/checks.h"
#include "apps/cli/options/option_table.h"

namespace jouleprof::cli {
namespace {

constexpr std::size_t kUsualTop = 20;

}  // namespace

void ActivityChoice::declare(CLI::App& app) {
  auto* asked = add(app, "--by", by);
  add(app, "--sort", sort)->needs(asked);
  add(app, "--top", top)->needs(asked);
  auto* folded = add(app, "--fold", fold)->needs(asked);
  add(app, "--no-fold", no_fold)->needs(asked)->excludes(folded);
  add(app, "--depth", depth)->needs(asked)->check(above_zero());
}

Result<report::ActivityOptions> ActivityChoice::options(bool all) const {
  report::ActivityOptions options;
  const auto parsed = report::parse_activity_by(by);
  if (!parsed) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format(
            "--by {}: give kernel, layer, range, phase, window, collective, request, tenant, "
            "host, rank or job",
            by));
  }
  options.by = *parsed;
  if (!sort.empty()) {
    options.sort = report::parse_activity_sort(sort);
    if (!options.sort) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--sort {}: give energy, time, count or power", sort));
    }
  }
  options.top = top;
  if (!top && !all) options.top = kUsualTop;
  options.depth = depth;
  options.fold = fold;
  options.fold_many = !all && !no_fold && options.by == report::ActivityBy::kLayer;
  if (fold && options.by != report::ActivityBy::kLayer) {
    return fail(Errc::kInvalidArgument, "--fold is of --by layer");
  }
  return options;
}

}  // namespace jouleprof::cli
