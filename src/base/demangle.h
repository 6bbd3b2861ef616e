// Compilers' names of functions as people write them.
#pragma once

#include <string>

namespace jouleprof {

// "void copy<float>(float*)" for "_Z4copyIfEvPT_"; what is no such name comes back as it is.
std::string demangle(const std::string& name);

}  // namespace jouleprof
