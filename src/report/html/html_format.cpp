// One page with everything in it: src/report/html/template.html is built from web/ and has three
// marks, which are replaced here.
#include <array>
#include <optional>
#include <utility>

#include "report/format.h"
#include "report/html/headline.h"
#include "report/html/markup.h"
#include "report/html/page_data.h"
#include "report/html/template.h"
#include "report/markup_text.h"
#include "report/redaction.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const auto& whole = run.profile(part);
  if (!whole) return tl::unexpected(whole.error());
  const model::Profile profile = options.redact ? redacted(*whole) : *whole;
  std::optional<Costs> costs;
  if (options.costs.any()) {
    auto made = costs_of(run, part, options.costs);
    if (!made) return forward_error(made);
    costs = std::move(*made);
    auto& series = costs->factors.series;
    if (options.redact && series) series->file = "(redacted)";
  }
  const Costs* shown = costs ? &*costs : nullptr;
  const auto data = page_data(run, part, options, profile, shown);
  if (!data) return tl::unexpected(data.error());
  const std::array<std::pair<std::string_view, std::string>, 4> parts{
      {{"<!--jouleprof:title-->", markup_text(page_title(profile, options.redact))},
       {"<!--jouleprof:headline-->", headline_html(profile, options, shown)},
       {"<!--jouleprof:provenance-->", provenance_html(profile, options)},
       {"<!--jouleprof:data-->", script_json(*data)}}};
  std::string_view rest = kTemplate;
  for (const auto& [mark, text] : parts) {
    const auto at = rest.find(mark);
    if (at == std::string_view::npos) {
      return fail(Errc::kInternal, "the page's template lacks " + std::string(mark));
    }
    out << rest.substr(0, at) << text;
    rest.remove_prefix(at + mark.size());
  }
  out << rest;
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
