// Texts of --web.config.file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "apps/serve/web_security.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("web_config", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  const auto config = jouleprof::serve::read_web_config("/proc/self/fd/" + std::to_string(file));
  close(file);
  // A header with a line break would begin another one.
  if (config) {
    for (const auto& [name, value] : config->headers) {
      if ((name + value).find_first_of("\r\n") != std::string::npos) std::abort();
    }
  } else if (config.error().message.empty()) {
    std::abort();
  }
  return 0;
}
