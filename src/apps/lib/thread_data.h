// Keeps the memory of this library's thread-local data from being asked for late.
#pragma once

namespace jouleprof::lib {

// Does nothing. Its thread-local variable, compiled as CMakeLists.txt says, makes the loader place
// all of this library's thread-local data, libstdc++'s of exceptions among them, in the block that
// each thread has from its begin, if there is room. Otherwise the C library asks for memory at a
// thread's first exception, and ends the program where there is none.
void keep_thread_data() noexcept;

}  // namespace jouleprof::lib
