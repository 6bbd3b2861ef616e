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
    out << windows_to_text(**made, options.text);
    return {};
  }
  if (options.collectives) {
    const auto made = traced_collectives(run, part);
    if (!made) return forward_error(made);
    out << collectives_to_text(**made, options.text);
    return {};
  }
  std::string costs;
  if (options.costs.any() && !options.by) {
    const auto made = costs_of(run, part, options.costs, options.text.whole_machine);
    if (!made) return forward_error(made);
    costs = costs_to_text(*made, options.text);
  }
  if (options.wall && !options.by) {
    const auto made = compare_wall(run, part, *options.wall);
    if (!made) return forward_error(made);
    costs += wall_to_text(*made, options.text);
  }
  return write_table_or_summary(
      run, part, options, out,
      [&](const auto& activity) { return activity_to_text(activity, *options.by, options.text); },
      [&](const auto& profile) {
        const std::string units =
            options.per
                ? per_unit_to_text(per_unit(profile, *options.per, options.text.whole_machine),
                                   options.text)
                : "";
        return to_text(profile, options.text) + units + costs;
      });
}

}  // namespace

extern const Format text_format;
constinit const Format text_format{.name = "text",
                                   .extension = ".txt",
                                   .shows = "the summary, or a table of --by, for people",
                                   .has_tables = true,
                                   .write = write};

}  // namespace jouleprof::report
