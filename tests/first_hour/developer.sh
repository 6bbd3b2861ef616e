# A developer in C++: a window in my program. The library is what `make install PREFIX=...` wrote.
if [ -z "${JOULEPROF_PREFIX:-}" ] || ! command -v c++ >/dev/null; then
  echo "skipped: needs c++ and JOULEPROF_PREFIX"
  exit 0
fi
library=$(dirname "$(find "$JOULEPROF_PREFIX" -name 'libjouleprof.so' | head -1)")
c++ -std=c++17 -I"$JOULEPROF_PREFIX/include" "$SOURCE/examples/cpp/windows.cpp" -L"$library" -ljouleprof -Wl,-rpath,"$library" -o windows
./windows | tee windows.txt
grep -Eq ' J.*, (measured|ESTIMATED|SIMULATED)$' windows.txt
