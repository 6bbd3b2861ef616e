// A page from its template and its parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/provenance.h"
#include "report/json/json_text.h"
#include "report/results/pages.h"

namespace jouleprof::report {

struct PageParts {
  std::string title;       // text
  std::string headline;    // HTML, which needs no script
  std::string provenance;  // HTML
  Json data;               // for the page's script (web/src/data.ts)
};
// Errors: internal, where the template lacks a mark.
Result<std::string> assemble_page(const PageParts& parts);

// Of pages that are not of a run: the keys that every page's data begin with.
Json page_head(const PageOptions& options);
std::string page_foot(const PageOptions& options);

// HTML of text: `<tag class="kind">text</tag>`.
std::string element(std::string_view tag, std::string_view kind, std::string_view text);
std::string badge(std::string_view kind, std::string_view word);
std::string badge(model::Provenance provenance);
// The figure in large letters, with what belongs to it in small ones.
std::string hero(std::string_view figure, std::string_view error, std::string_view badge_html,
                 std::string_view line);
// A table that scrolls where it is too wide. The first cell of a row is its heading; the others are
// numbers. Cells are text.
std::string figure_table(std::string_view name, const std::vector<std::string>& headings,
                         const std::vector<std::vector<std::string>>& rows);

}  // namespace jouleprof::report
