// What --redact leaves out of a page or figure.
#pragma once

#include "model/profile.h"

namespace jouleprof::report {

// Without command line, host, user, folders, and the names, command lines and UUIDs of processes
// and devices. Where sentences name one of these, it becomes "(redacted)". Names of windows,
// kernels and layers stay: they are what the report is about.
model::Profile redacted(model::Profile profile);

}  // namespace jouleprof::report
