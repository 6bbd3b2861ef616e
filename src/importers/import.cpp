#include "importers/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "importers/combine.h"
#include "importers/importer.h"

namespace jouleprof::importers {
namespace {

// Four days of eight GPUs at one row a second. A reading takes up to eight times its text in
// memory.
constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

// A log of zeus_monitor has the columns Time and Power, which others may have: it comes late.
constexpr std::array kImporters = {
    &kNvidiaSmiImporter,    &kZeusWindowsImporter, &kZeusSweepImporter,  &kZeusProfileImporter,
    &kGpuTuneImporter,      &kGpuppImporter,       &kCodeCarbonImporter, &kOmegaWattImporter,
    &kAiPowerMeterImporter, &kZeusMonitorImporter, &kDcgmImporter,       &kPmonImporter,
    &kDmonImporter};

std::string format_names() {
  std::vector<std::string_view> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Importer* by_name(std::string_view name) {
  const auto found = std::find_if(kImporters.begin(), kImporters.end(),
                                  [name](const auto* i) { return i->format.name == name; });
  return found == kImporters.end() ? nullptr : *found;
}

Result<const Importer*> recognise(const SourceText& source) {
  const auto fits = [&](const Importer* i) { return i->recognises(source.text); };
  const auto found = std::find_if(kImporters.begin(), kImporters.end(), fits);
  if (found != kImporters.end()) return *found;
  return fail(Errc::kUnsupported,
              fmt::format("{}: not recognised as any of {}; if it is one of them, name it with "
                          "--format to see what is wrong with it",
                          source.path, format_names()));
}

Result<void> check_text(const SourceText& source) {
  if (trim(source.text).empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: the file is empty", source.path));
  }
  if (source.text.find('\0') != std::string::npos) {
    return fail(
        Errc::kUnsupported,
        fmt::format("{}: not a text file; unpack it first if it is compressed", source.path));
  }
  return {};
}

// Sources that one call of an importer reads.
struct Group {
  const Importer* importer = nullptr;
  std::vector<std::size_t> sources;
};

Result<std::vector<Group>> group(std::span<const SourceText> sources,
                                 const ImportOptions& options) {
  const Importer* named = nullptr;
  if (!options.format.empty()) {
    named = by_name(options.format);
    if (!named) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("'{}' is not a format to import; there are {}", options.format,
                              format_names()));
    }
  } else if (!options.columns.empty()) {
    named = &kNvidiaSmiImporter;
  }
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const SourceText& source = sources[i];
    if (auto text = check_text(source); !text) return forward_error(text);
    const Importer* importer = named;
    if (!importer) {
      auto found = recognise(source);
      if (!found) return forward_error(found);
      importer = *found;
    }
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const Group& g) { return g.importer == importer; });
    if (importer->several_files && same != groups.end()) {
      same->sources.push_back(i);
    } else {
      groups.push_back({importer, {i}});
    }
  }
  return groups;
}

// True of pmon's logs alone: all other importers check it.
bool holds_no_energy(const model::Recording& recording) {
  return recording.readings.powers.empty() && recording.readings.counters.empty() &&
         recording.imported_windows.empty();
}

Result<SourceText> read_source(const std::filesystem::path& file) {
  auto text = read_file(file, kMaxFileBytes);
  if (!text) return forward_error(text);
  if (text->starts_with("\xEF\xBB\xBF")) text->erase(0, 3);  // some editors add it
  return SourceText{file.string(), std::move(*text)};
}

// Leaves out sources, from `first` on, that only add to others of their format, of which there is
// none.
void leave_out_additions(std::vector<SourceText>& sources, std::size_t first,
                         std::vector<std::string>& left_out) {
  const auto begin = sources.begin() + static_cast<std::ptrdiff_t>(first);
  for (const Importer* importer : kImporters) {
    if (importer->only_adds == nullptr) continue;
    const auto adds = [&](const SourceText& s) { return importer->only_adds(s.text); };
    const auto has_power = [&](const SourceText& s) {
      return importer->recognises(s.text) && !adds(s);
    };
    if (std::any_of(begin, sources.end(), has_power)) continue;
    const auto lone = std::stable_partition(begin, sources.end(), std::not_fn(adds));
    for (auto s = lone; s != sources.end(); ++s) {
      left_out.push_back(std::filesystem::path(s->path).filename().string());
    }
    sources.erase(lone, sources.end());
  }
}

// The folder's files that are of a known format, or of the named one.
Result<void> add_folder(const std::filesystem::path& folder, const ImportOptions& options,
                        std::vector<SourceText>& sources, std::vector<std::string>& left_out) {
  const auto names = list_folder(folder);
  if (!names) return forward_error(names);
  const std::size_t before = sources.size();
  for (const std::string& name : *names) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(folder / name, error)) continue;
    auto source = read_source(folder / name);
    if (!source) return forward_error(source);
    const Result<const Importer*> importer =
        check_text(*source) ? recognise(*source) : Result<const Importer*>(nullptr);
    if (!importer || !*importer ||
        (!options.format.empty() && (*importer)->format.name != options.format)) {
      left_out.push_back(name);
      continue;
    }
    sources.push_back(std::move(*source));
  }
  leave_out_additions(sources, before, left_out);
  if (sources.size() > before) return {};
  return fail(Errc::kUnsupported,
              fmt::format("{}: no file in this folder is of a format to import: {}",
                          folder.string(), format_names()));
}

}  // namespace

std::span<const Importer* const> importers() { return kImporters; }

std::span<const Format> formats() {
  static const auto all = [] {
    std::array<Format, kImporters.size()> list;
    std::transform(kImporters.begin(), kImporters.end(), list.begin(),
                   [](const Importer* i) { return i->format; });
    return list;
  }();
  return all;
}

Result<model::Recording> import_texts(std::span<const SourceText> sources,
                                      const ImportOptions& options) {
  if (sources.empty()) return fail(Errc::kInvalidArgument, "no file to import was named");
  if (options.interval && *options.interval <= Duration::zero()) {
    return fail(Errc::kInvalidArgument, "the interval between rows has to be longer than zero");
  }
  const auto groups = group(sources, options);
  if (!groups) return forward_error(groups);
  std::vector<ImportedPart> parts;
  for (const Group& group : *groups) {
    const std::size_t first = group.sources.front();
    const std::size_t count = group.sources.size();
    Result<model::Recording> part = fail(Errc::kInternal, "not read");
    if (group.sources.back() == first + count - 1) {
      part = group.importer->read(sources.subspan(first, count), options);
    } else {
      std::vector<SourceText> chosen;
      for (const std::size_t i : group.sources) chosen.push_back(sources[i]);
      part = group.importer->read(chosen, options);
    }
    if (!part) return forward_error(part);
    parts.push_back({sources[first].path, std::move(*part)});
  }
  Result<model::Recording> recording =
      parts.size() == 1 ? std::move(parts.front().recording) : combine(std::move(parts));
  if (recording && holds_no_energy(*recording)) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{}: pmon shows no power; import it together with a log of power at the "
                    "same time, such as 'nvidia-smi dmon -s puc -o DT'",
                    sources.front().path));
  }
  return recording;
}

Result<model::Recording> import_files(const std::vector<std::filesystem::path>& files,
                                      const ImportOptions& options) {
  std::vector<SourceText> sources;
  std::vector<std::string> left_out;
  for (const auto& file : files) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
      if (auto added = add_folder(file, options, sources, left_out); !added) {
        return forward_error(added);
      }
      continue;
    }
    auto source = read_source(file);
    if (!source) return forward_error(source);
    sources.push_back(std::move(*source));
  }
  auto recording = import_texts(sources, options);
  if (recording && !left_out.empty()) {
    recording->warnings.push_back(
        {HostTime{},
         fmt::format("{} file{} of the folder left out, without power or of no known format: {}",
                     left_out.size(), left_out.size() == 1 ? "" : "s", fmt::join(left_out, ", "))});
  }
  return recording;
}

}  // namespace jouleprof::importers
