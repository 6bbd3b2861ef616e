// Prints what a recording says, through the C++ interface.
#include <iostream>
#include <jouleprof/jouleprof.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto report = jouleprof::Report::open(argv[1]);
  if (!report) {
    std::cerr << report.error().message << '\n';
    return 1;
  }
  std::cout << jouleprof::version() << '\n';
  for (const auto& d : report->domains()) {
    if (d.energy) std::cout << d.device << ' ' << d.energy->joules() << " J\n";
  }
  return report->json().empty() ? 1 : 0;
}
