// Text for people: how it is wanted; made safe for a terminal, measured, cut, padded and wrapped by
// what it shows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jouleprof::report {

struct TextOptions {
  bool colour = false;
  int width = 80;  // columns of the terminal
  // Lines of the terminal, to stay within; many devices, windows or warnings may take more. A file
  // or pipe has none: each finding is there in full.
  std::optional<int> height;
  bool whole_machine = false;  // quote the energy of all devices, and not the command's
  // With the balance, levels, repeatability, own cost and all findings. Without them, the answer
  // and what it is made of: at most 15 lines where there is a height.
  bool details = true;
  std::size_t lines_below = 0;  // of those 15, for units and costs
  // What a terminal shows of a summary without details.
  bool is_brief() const { return !details && height.has_value(); }
  bool ascii = false;          // "+-" instead of the sign, '?' for what is beyond ASCII
  std::string recording_path;  // the last line names `jouleprof report` for it; may be empty
  std::string next_command;    // named in the last line instead, as it is
};

// The character that UTF-8 text begins with; not valid: its first byte begins none. `text` is not
// empty.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};
Character first_character(std::string_view text);

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
