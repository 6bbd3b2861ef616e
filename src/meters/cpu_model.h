// The processor's model, from /proc/cpuinfo.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::meters {

struct CpuModel {
  std::string vendor;        // "GenuineIntel", "AuthenticAMD"; empty on ARM
  std::string name = "CPU";  // "AMD EPYC 9654 96-Core Processor", where the kernel reports it
  int logical_cpus = 0;      // online and visible; 0 when the file cannot be read

  bool is_amd() const { return vendor == "AuthenticAMD" || vendor == "HygonGenuine"; }
};

// Reads <root>/proc/cpuinfo. What it does not say stays at its default.
inline CpuModel read_cpu_model(const std::filesystem::path& root) {
  CpuModel model;
  const auto text = read_file(root / "proc/cpuinfo");
  if (!text) return model;
  for (const std::string_view line : split(*text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (key == "processor") ++model.logical_cpus;
    if (key == "vendor_id" && model.vendor.empty()) model.vendor = value;
    if (key == "model name" && model.name == "CPU" && !value.empty()) model.name = value;
  }
  return model;
}

}  // namespace jouleprof::meters
