#include "importers/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "importers/importer.h"

namespace jouleprof::importers {
namespace {

// Four days of eight GPUs at one row a second. A reading takes up to eight times its text in
// memory.
constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

constexpr std::array kImporters = {
    &kZeusMonitorImporter, &kZeusWindowsImporter,  &kZeusSweepImporter, &kZeusProfileImporter,
    &kGpuTuneImporter,     &kAiPowerMeterImporter, &kDmonImporter};

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
  return fail(Errc::kInvalidArgument,
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
        Errc::kCorrupt,
        fmt::format("{}: not a text file; unpack it first if it is compressed", source.path));
  }
  return {};
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
  const Importer* importer = nullptr;
  if (!options.format.empty()) {
    importer = by_name(options.format);
    if (!importer) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("'{}' is not a format to import; there are {}", options.format,
                              format_names()));
    }
  }
  for (const SourceText& source : sources) {
    if (auto text = check_text(source); !text) return forward_error(text);
    if (!options.format.empty()) continue;
    auto found = recognise(source);
    if (!found) return forward_error(found);
    if (importer && importer != *found) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("{} is {} and {} is {}: import one format at a time", sources.front().path,
                      importer->format.name, source.path, (*found)->format.name));
    }
    importer = *found;
  }
  if (sources.size() > 1 && !importer->several_files) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} files cannot be put together; import them one by one",
                            importer->format.name));
  }
  return importer->read(sources, options);
}

Result<model::Recording> import_files(const std::vector<std::filesystem::path>& files,
                                      const ImportOptions& options) {
  std::vector<SourceText> sources;
  for (const auto& file : files) {
    auto text = read_file(file, kMaxFileBytes);
    if (!text) return forward_error(text);
    if (text->starts_with("\xEF\xBB\xBF")) text->erase(0, 3);  // some editors add it
    sources.push_back({file.string(), std::move(*text)});
  }
  return import_texts(sources, options);
}

}  // namespace jouleprof::importers
