// Texts of the user's configuration file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apps/cli/verb.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  write_seed("config",
             "# comment\nprice = 0.30/kWh  # another\ncarbon = 230\nno-process-names = on\n");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = cli::parse_config(text);
  if (!settings) {
    if (settings.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& [name, value, source] : *settings) {
    if (name.empty() || source.empty() || (name + value).find_first_of("#\n") != std::string::npos)
      std::abort();
  }
  return 0;
}
