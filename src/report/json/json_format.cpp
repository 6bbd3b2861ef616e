#include "report/costs/wall.h"
#include "report/format/collectives.h"
#include "report/format/format.h"
#include "report/format/traced.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  if (options.windows) {
    const auto made = profile_with_windows(run, part);
    if (!made) return forward_error(made);
    out << windows_to_json(**made);
    return {};
  }
  if (options.collectives) {
    const auto made = traced_collectives(run, part);
    if (!made) return forward_error(made);
    out << collectives_to_json(**made);
    return {};
  }
  std::optional<Costs> costs;
  if (options.costs.any() && !options.by) {
    auto made = costs_of(run, part, options.costs, options.text.whole_machine);
    if (!made) return forward_error(made);
    costs = std::move(*made);
  }
  std::optional<WallComparison> wall;
  if (options.wall && !options.by) {
    auto made = compare_wall(run, part, *options.wall);
    if (!made) return forward_error(made);
    wall = std::move(*made);
  }
  return write_table_or_summary(
      run, part, options, out,
      [&](const auto& activity) { return activity_to_json(activity, *options.by); },
      [&](const auto& profile) {
        const auto per =
            options.per ? std::optional(per_unit(profile, *options.per, options.text.whole_machine))
                        : std::nullopt;
        return to_json(profile, costs ? &*costs : nullptr, wall ? &*wall : nullptr,
                       per ? &*per : nullptr);
      });
}

}  // namespace

extern const Format json_format;
constinit const Format json_format{
    .name = "json",
    .extension = ".json",
    .shows = "every figure of the summary, or of --by (docs/json.md)",
    .has_tables = true,
    .write = write};

}  // namespace jouleprof::report
