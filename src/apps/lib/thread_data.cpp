#include "apps/lib/c_interface.h"

namespace jouleprof::lib {
namespace {

thread_local volatile bool is_in_use = false;

}  // namespace

void keep_thread_data() noexcept { is_in_use = true; }

}  // namespace jouleprof::lib
