// Names of files in the kubelet's folders: each line of an input is one; those of containers begin
// with a slash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/text.h"
#include "spans/procs/owners.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  write_seed("names",
             "ns_pod_12345678-1234-1234-1234-123456789abc\n"
             "kube-system_etcd-node_0123456789abcdef0123456789abcdef\n"
             "/pod_ns_container-"
             "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.log\n");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pods = fuzz_folder() / "pods";
  const auto containers = fuzz_folder() / "containers";
  std::filesystem::create_directories(pods);
  std::filesystem::create_directories(containers);
  std::size_t files = 0;
  for (std::string_view name : split(text, '\n')) {
    const bool container = name.starts_with('/');
    if (container) name.remove_prefix(1);
    if (!is_file_name(name)) continue;
    if (++files > 20) break;
    if (container) {
      write_bytes(containers / name, "");
    } else {
      std::filesystem::create_directory(pods / name);
    }
  }
  spans::KubeNameFolder folder(fuzz_folder());
  if (!folder.read()) std::abort();
  for (const auto& [uid, pod] : folder.names().pods) {
    if (uid.empty() || pod.name.empty() || pod.name_space.empty()) std::abort();
  }
  for (const auto& [id, name] : folder.names().containers) {
    if (id.empty() || name.empty()) std::abort();
  }
  std::filesystem::remove_all(pods);
  std::filesystem::remove_all(containers);
  return 0;
}
