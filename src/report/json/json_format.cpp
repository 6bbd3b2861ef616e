#include "report/format.h"
#include "report/traced.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  if (options.by) {
    const auto activity = traced_activity(run, part);
    if (!activity) return tl::unexpected(activity.error());
    out << activity_to_json(**activity, *options.by);
    return {};
  }
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  out << to_json(*profile);
  return {};
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
