// Text in columns: made safe for a terminal, measured, cut, padded and wrapped by what it shows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace jouleprof::report {

// Text that does nothing to a terminal: white space becomes a blank; control characters, bytes that
// are no UTF-8 and marks that turn the direction of writing become U+FFFD, or '?' in ASCII, where
// every other character beyond ASCII does too.
std::string printable(std::string_view text, bool ascii = false);

// Columns that UTF-8 text takes on a terminal.
std::size_t display_width(std::string_view text);

// At most `width` columns; a cut is shown by "..." (or by dots alone where there is no room).
std::string fit(std::string_view text, std::size_t width);

std::string pad_right(std::string text, std::size_t width);  // text at the left
std::string pad_left(std::string text, std::size_t width);   // text at the right

// Lines of at most `width` columns, broken at blanks where there are any.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// A word as a shell reads it back: quoted where it has to be.
std::string shell_word(std::string_view word);

// Text in HTML and XML. Names come from the measured program: none may become markup.

// As the text of an element, or the value of an attribute in double quotes. Control characters,
// marks that turn the direction of writing and bytes that are no UTF-8 become U+FFFD.
std::string markup_text(std::string_view text);

}  // namespace jouleprof::report
