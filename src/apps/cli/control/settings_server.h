// Settings for the Python package, which starts this program as its child.
#pragma once

#include <string>
#include <vector>

namespace jouleprof::cli {

// The word with which this program becomes the server: see main().
inline constexpr const char* kServerWord = "hold-settings";

// `arguments`: the knob's word, devices separated by commas (may be empty), "shared" or "own".
// Holds the boards as a sweep does, answers requests on stdin, one a line, with one line of JSON
// each on stdout, and restores when stdin ends:
//
//   (at the start)   {"least": 150, "most": 700, "found": 650, "steps": [], "devices": ["gpu0"]}
//   set 300          {"requested": 300, "enforced_watts": 300}
//   restore          {"warnings": []}
//
// An error is {"status": N, "message": "..."}, with the numbers of jouleprof_status. An error at
// the start ends the program. The parent process may use the boards.
int serve_settings(const std::vector<std::string>& arguments);

}  // namespace jouleprof::cli
