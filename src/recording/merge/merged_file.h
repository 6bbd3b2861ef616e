// Recordings of several hosts, ranks or parts of a job in one file. Each is kept byte by byte, so
// that merging loses nothing and does not depend on the order of the merges. FORMAT.md has the
// tables.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::recording {

// One recording in a merged file.
struct MergedPart {
  std::string name;     // of the file that was merged, without its folder
  std::string host;     // as in RunInfo
  std::string boot_id;  // as in RunInfo

  bool operator==(const MergedPart&) const = default;
};

// Containers of one machine have names of their own and one boot. Without a boot: by name, if any.
bool is_one_machine(const MergedPart& a, const MergedPart& b);

// Whether the file is a merged one. False also for a file that cannot be read.
bool is_merged_file(const std::filesystem::path& path);

using OfRecording = std::function<void(const std::string& name, const model::Recording&)>;

// Writes the recordings in `inputs`, which may be merged files, into `output`. Returns how many
// they are. Reads one recording at a time. One whose writer was killed is taken up to its last
// commit. Where `each` is given, it is called with the name of each and what is in it, in the order
// of `inputs`. Errors: unavailable for one that is being written; invalid_argument where the same
// recording comes twice, which it names, or `output` exists and may not be replaced; as
// read_recording's. Where it fails there is no `output`, and `is_of_output` says whether that could
// not be written.
Result<std::size_t> merge_recordings(const std::vector<std::filesystem::path>& inputs,
                                     const std::filesystem::path& output, bool overwrite,
                                     const OfRecording& each = {}, bool* is_of_output = nullptr);

// The recordings of a merged file, by boot, host, name and content. Errors: as
// read_sweep's.
Result<std::vector<MergedPart>> merged_parts(const std::filesystem::path& path);

// Writes one of merged_parts, by its number from 1, into the file `to`. Errors: as merged_parts;
// not_found for another number; of writing.
Result<void> extract_part(const std::filesystem::path& path, unsigned number,
                          const std::filesystem::path& to);

// Calls `each` with the recordings of one machine at a time, in the order of merged_parts.
// Errors: as read_recording's.
using OfOneHost = std::vector<std::pair<MergedPart, model::Recording>>;
Result<void> read_merged(const std::filesystem::path& path,
                         const std::function<Result<void>(OfOneHost)>& each);

// --- A recording as a further part of a file that has others ---

// Whether append_recording() could add to `file`. Errors: not_found; invalid_argument for a sweep's
// file; unavailable while another process writes it; as read_recording's.
Result<void> check_appendable(const std::filesystem::path& file);

// Adds `recording` to `file`, which is a recording or a merged file and becomes a merged one. Parts
// that are made here are named after `file` with their number: "train-0001.jprof", ... Until the
// whole is written, `file` stays as it was; `recording` stays in any case. Returns the number of
// the part, as extract_part() takes it. Errors: as check_appendable's and merge_recordings'.
Result<std::size_t> append_recording(const std::filesystem::path& recording,
                                     const std::filesystem::path& file);

}  // namespace jouleprof::recording
