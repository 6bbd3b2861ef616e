#include "report/format.h"
#include "report/traced.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  return write_table_or_summary(
      run, part, options, out,
      [&](const auto& activity) { return activity_to_text(activity, *options.by, options.text); },
      [&](const auto& profile) { return to_text(profile, options.text); });
}

}  // namespace

extern const Format text_format;
constinit const Format text_format{.name = "text",
                                   .extension = ".txt",
                                   .shows = "the summary, or a table of --by, for people",
                                   .has_tables = true,
                                   .write = write};

}  // namespace jouleprof::report
