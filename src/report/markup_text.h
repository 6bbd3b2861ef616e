// Text in HTML and XML. Names come from the measured program: none may become markup.
#pragma once

#include <string>
#include <string_view>

namespace jouleprof::report {

// As the text of an element, or the value of an attribute in double quotes. Control characters,
// marks that turn the direction of writing and bytes that are no UTF-8 become U+FFFD.
std::string markup_text(std::string_view text);

}  // namespace jouleprof::report
