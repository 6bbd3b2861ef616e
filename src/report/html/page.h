// A page from its template and its parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/domain.h"
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

// The page without its data. Built from web/ by `make page`, and compiled in.

extern const std::string_view kTemplate;         // of a run
extern const std::string_view kResultsTemplate;  // of a comparison, sweep, benchmark or job

// Data in a page. Names come from the measured program: none may become markup.

// A JSON document on one line, for a <script type="application/json">: it has no '<', so that
// neither "</script>" nor "<!--" ends it, and no U+2028 or U+2029.
std::string script_json(const Json& document);

// Rows that share their keys as {"keys": [...], "rows": [[...]]}, which takes half of the room.
// Keys of `dropped` are left out; the order of the others is the first row's.
Json packed_rows(const Json& rows, const std::vector<std::string_view>& dropped = {});

}  // namespace jouleprof::report
