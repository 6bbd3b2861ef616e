// Data in a page. Names come from the measured program: none may become markup.
#pragma once

#include <string>
#include <string_view>

#include "report/json/json_text.h"

namespace jouleprof::report {

// A JSON document on one line, for a <script type="application/json">: it has no '<', so that
// neither "</script>" nor "<!--" ends it, and no U+2028 or U+2029.
std::string script_json(const Json& document);

// Rows that share their keys as {"keys": [...], "rows": [[...]]}, which takes half of the room.
// Keys of `dropped` are left out; the order of the others is the first row's.
Json packed_rows(const Json& rows, const std::vector<std::string_view>& dropped = {});

}  // namespace jouleprof::report
