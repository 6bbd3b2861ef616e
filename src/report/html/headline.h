// The part of the page that needs no script.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/costs/costs.h"
#include "report/format/format.h"

namespace jouleprof::report {

// HTML: what ran, its energy with interval and provenance, its costs where `costs` is not null, a
// table of the devices, findings with their next steps, warnings. Every name is escaped.
std::string headline_html(const model::Profile& profile, const FormatOptions& options,
                          const Costs* costs);

// HTML: what made the page, from which file, and the command that prints the same figures.
std::string provenance_html(const model::Profile& profile, const FormatOptions& options);

// The document's title, as text.
std::string page_title(const model::Profile& profile, bool redact);

}  // namespace jouleprof::report
