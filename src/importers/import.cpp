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
#include "importers/builder.h"
#include "model/device/sensor_table.h"

// Every importer has one line here, in the order in which they are tried. A log of zeus_monitor has
// the columns Time and Power, which others may have: it comes late.
#define JOULEPROF_IMPORTERS        \
  JOULEPROF_IMPORTER(OwnCsv)       \
  JOULEPROF_IMPORTER(NvidiaSmi)    \
  JOULEPROF_IMPORTER(ZeusWindows)  \
  JOULEPROF_IMPORTER(ZeusSweep)    \
  JOULEPROF_IMPORTER(ZeusProfile)  \
  JOULEPROF_IMPORTER(GpuTune)      \
  JOULEPROF_IMPORTER(Gpupp)        \
  JOULEPROF_IMPORTER(CodeCarbon)   \
  JOULEPROF_IMPORTER(OmegaWatt)    \
  JOULEPROF_IMPORTER(AiPowerMeter) \
  JOULEPROF_IMPORTER(ZeusMonitor)  \
  JOULEPROF_IMPORTER(Tegrastats)   \
  JOULEPROF_IMPORTER(Dcgm)         \
  JOULEPROF_IMPORTER(Perun)        \
  JOULEPROF_IMPORTER(Pmon)         \
  JOULEPROF_IMPORTER(Dmon)

namespace jouleprof::importers {

#define JOULEPROF_IMPORTER(name) extern const Importer k##name##Importer;
JOULEPROF_IMPORTERS
#undef JOULEPROF_IMPORTER
extern const Importer kNamedCsvImporter;  // chosen by its options

namespace {

// Four days of eight GPUs at one row a second. A reading takes up to eight times its text in
// memory.
constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

constexpr std::array kImporters = {
#define JOULEPROF_IMPORTER(name) &k##name##Importer,
    JOULEPROF_IMPORTERS
#undef JOULEPROF_IMPORTER
};

std::string format_names() {
  std::vector<std::string_view> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Importer* by_name(std::string_view name) {
  const auto found =
      std::ranges::find_if(kImporters, [name](const auto* i) { return i->format.name == name; });
  return found == kImporters.end() ? nullptr : *found;
}

const Importer* recognised(std::string_view text) {
  const auto fits = [&](const Importer* i) { return i->recognises(text); };
  const auto found = std::ranges::find_if(kImporters, fits);
  return found == kImporters.end() ? nullptr : *found;
}

// The format of the source, which loses times in front of its lines where it has one without them.
Result<const Importer*> recognise(SourceText& source) {
  const Importer* const whole = recognised(source.text);
  if (auto bare = without_time_prefixes(source)) {
    const Importer* const found = recognised(bare->text);
    if (found != nullptr && (whole == nullptr || whole == found)) {
      source = std::move(*bare);
      return found;
    }
  }
  if (whole != nullptr) return whole;
  // A spreadsheet saved it, where decimals have commas.
  std::string header = source.text.substr(0, source.text.find('\n'));
  const bool has_semicolons = header.find(',') == header.npos && header.find(';') != header.npos;
  std::ranges::replace(header, ';', ',');
  if (const Importer* const found = has_semicolons ? recognised(header) : nullptr) {
    auto text = with_commas(source);
    if (!text) return forward_error(text);
    source.text = std::move(*text);
    return found;
  }
  if (source.text.find("\"traceEvents\"") != std::string_view::npos) {
    return fail(Errc::kUnsupported,
                fmt::format("{}: a trace has no readings of power; jouleprof annotate adds the "
                            "energy of a recording to a trace of torch.profiler",
                            source.path));
  }
  return fail(Errc::kUnsupported,
              fmt::format("{}: not recognised as any of {}; if it is one of them, name it with "
                          "--format to see what is wrong with it; of any CSV file, name the "
                          "columns with --time-column and --power-column",
                          source.path, format_names()));
}

Result<void> check_text(const SourceText& source) {
  if (trim(source.text).empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: the file is empty", source.path));
  }
  return {};
}

// Sources that one call of an importer reads.
struct Group {
  const Importer* importer = nullptr;
  std::vector<std::size_t> sources;
};

// `copies` gets a note of each source that holds what one before it holds. Logs that are one a
// device may be alike.
Result<std::vector<Group>> group(std::span<SourceText> sources, const ImportOptions& options,
                                 std::vector<std::string>& copies) {
  const Importer* named = nullptr;
  if (!options.power_columns.empty()) {
    named = &kNamedCsvImporter;
  } else if (!options.format.empty()) {
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
    SourceText& source = sources[i];
    if (auto text = check_text(source); !text) return forward_error(text);
    const Importer* importer = named;
    if (!importer) {
      auto found = recognise(source);
      if (!found) return forward_error(found);
      importer = *found;
    } else if (auto bare = without_time_prefixes(source);
               bare && importer->recognises(bare->text)) {
      source = std::move(*bare);
    }
    const auto before = sources.first(i);
    const auto original = std::ranges::find(before, source.text, &SourceText::text);
    if (original != before.end() && !importer->several_files) {
      copies.push_back(fmt::format("{} left out: it is a copy of {}", source.path, original->path));
      continue;
    }
    const auto same =
        std::ranges::find_if(groups, [&](const Group& g) { return g.importer == importer; });
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
    auto source = read_source(folder / name, kMaxFileBytes);
    if (!source && source.error().code == Errc::kUnsupported) {  // no text
      left_out.push_back(name);
      continue;
    }
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

// Logs state no calibration error: it is that of the family of each GPU, of RAPL's DRAM, and of an
// estimate.
void set_scales(model::Recording& recording, const std::string& device_name) {
  for (model::Domain& domain : recording.domains) {
    using enum model::DomainKind;
    const bool is_gpu = domain.kind == kGpu || domain.kind == kGpuMemory || domain.kind == kModule;
    if (is_gpu && !device_name.empty()) domain.name = device_name;
    for (model::Sensor& sensor : recording.sensors) {
      if (sensor.domain != domain.id || sensor.kind == model::SensorKind::kGauge) continue;
      if (sensor.traits.scale != model::ScaleError{}) continue;
      if (sensor.provenance == model::Provenance::kEstimated) {
        sensor.traits.scale = model::ScaleError::symmetric(model::kEstimateError);
      } else if (sensor.provenance == model::Provenance::kMeasured && is_gpu) {
        sensor.traits.scale = model::scale_of_gpu(domain.name);
      } else if (sensor.provenance == model::Provenance::kMeasured && domain.kind == kDram) {
        sensor.traits.scale = model::scale_of_rapl_dram();
      }
    }
  }
}

}  // namespace

std::span<const Format> formats() {
  static const auto all = [] {
    std::array<Format, kImporters.size()> list;
    std::ranges::transform(kImporters, list.begin(), [](const Importer* i) { return i->format; });
    return list;
  }();
  return all;
}

Result<model::Recording> import_texts(std::span<const SourceText> given,
                                      const ImportOptions& options) {
  std::vector<SourceText> sources(given.begin(), given.end());
  for (SourceText& source : sources) {
    auto text = utf8_text(std::move(source.text), source.path);
    if (!text) return forward_error(text);
    source.text = std::move(*text);
  }
  if (sources.empty()) return fail(Errc::kInvalidArgument, "no file to import was named");
  if (options.interval && *options.interval <= Duration::zero()) {
    return fail(Errc::kInvalidArgument, "the interval between rows has to be longer than zero");
  }
  std::vector<std::string> copies;
  const auto groups = group(sources, options, copies);
  if (!groups) return forward_error(groups);
  std::vector<ImportedPart> parts;
  for (const Group& group : *groups) {
    const std::size_t first = group.sources.front();
    const std::size_t count = group.sources.size();
    Result<model::Recording> part = fail(Errc::kInternal, "not read");
    if (group.sources.back() == first + count - 1) {
      part = group.importer->read(std::span(sources).subspan(first, count), options);
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
  if (!recording) return recording;
  set_scales(*recording, options.device_name);
  for (std::string& text : copies) recording->warnings.push_back({HostTime{}, std::move(text)});
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
    auto source = read_source(file, kMaxFileBytes);
    if (!source) return forward_error(source);
    sources.push_back(std::move(*source));
  }
  auto recording = import_texts(sources, options);
  for (const SourceText& source : sources) {
    if (!recording || source.broken == 0) continue;
    recording->warnings.push_back(
        {HostTime{},
         fmt::format("{}: {} of its text {} no UTF-8, and replaced by U+FFFD", source.path,
                     counted(source.broken, "piece"), source.broken == 1 ? "is" : "are")});
  }
  if (recording && !left_out.empty()) {
    recording->warnings.push_back(
        {HostTime{},
         fmt::format("{} of the folder left out, without power or of no known format: {}",
                     counted(left_out.size(), "file"), fmt::join(left_out, ", "))});
  }
  return recording;
}

}  // namespace jouleprof::importers
