#include <string>
#include <vector>

#include "apps/cli/cli.h"

int main(int argc, char** argv) {
  return jouleprof::cli::main(std::vector<std::string>(argv + 1, argv + argc));
}
