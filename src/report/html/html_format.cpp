// A run as one page with everything in it.
#include <optional>
#include <utility>

#include "report/format/format.h"
#include "report/html/headline.h"
#include "report/html/page.h"
#include "report/html/page_data.h"
#include "report/redaction.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  run.process_slices(kMostSliceCells, part);  // first: attribution is then made once
  const auto& whole = run.profile(part);
  if (!whole) return tl::unexpected(whole.error());
  const model::Profile profile = options.redact ? redacted(*whole) : *whole;
  std::optional<Costs> costs;
  if (options.costs.any()) {
    auto made = costs_of(run, part, options.costs, options.text.whole_machine);
    if (!made) return forward_error(made);
    costs = std::move(*made);
    auto& series = costs->factors.series;
    if (options.redact && series) series->file = "(redacted)";
  }
  const Costs* shown = costs ? &*costs : nullptr;
  auto data = page_data(run, part, options, profile, shown);
  if (!data) return tl::unexpected(data.error());
  auto page =
      assemble_page({page_title(profile, options.redact), headline_html(profile, options, shown),
                     provenance_html(profile, options), std::move(*data)});
  if (!page) return forward_error(page);
  out << *page;
  return {};
}

}  // namespace

extern const Format html_format;
constinit const Format html_format{
    .name = "html",
    .extension = ".html",
    .shows = "a page with balance, timeline, flame graph and tables, for a browser",
    .write = write};

}  // namespace jouleprof::report
