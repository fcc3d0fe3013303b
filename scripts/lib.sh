# shellcheck shell=bash
# Shared by the scripts beside it: where things are, how packages are asked for, how the program is built.
# Source it from bash; it sets strict mode.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${HSM_VENV:-$root/.venv}
export HSM_VENV=$venv

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage TEXT: what --help prints.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"; }

# need_packages PURPOSE PACKAGE...: installs the Debian or Ubuntu packages that are missing. Does not call apt
# when there is nothing to install.
need_packages() {
  local purpose=$1 missing log as_root=()
  shift
  [ -z "${HSM_NO_APT:-}" ] || return 0
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this is neither Debian nor Ubuntu. Install what these packages hold ($purpose):
  $*
and run again with HSM_NO_APT=1."
  fi
  missing=$(comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | sort -u))
  [ -n "$missing" ] || return 0
  missing=${missing//$'\n'/ }

  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      die "packages are missing ($purpose), and only root can install them. Ask for:
  apt-get install $missing"
    fi
  fi
  say "Installing Debian packages ($purpose): $missing"
  log=$(mktemp "${TMPDIR:-/tmp}/hsm-apt.XXXXXX")
  if ! { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends $missing; } </dev/null >"$log" 2>&1; then
    grep -E '^(E|Err)[: ]' "$log" | tail -n 3 >&2 || true
    die "apt-get could not install: $missing
Is the network there? apt-get's whole output: $log"
  fi
  rm -f "$log"
}

# Number of compilations at once: one a core, and 1.5 GB of free memory for each (LibTorch's headers are large).
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$((cores < memory ? cores : memory))}"
}

# build PRESET [TARGET]: configures and builds in build/PRESET.
build() {
  local preset=$1 target=${2:-all} log=$root/build/$1/configure.log
  mkdir -p "$root/build/$preset"
  if ! cmake -S "$root" --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    die "configuring failed"
  fi
  cmake --build "$root/build/$preset" --target "$target" -j "$(build_jobs)" || die "building failed"
}

# run_tests PRESET [CTEST-ARGUMENT...]: runs the tests in build/PRESET; the last line says how many passed,
# failed and were skipped. Fails when one failed or none ran.
run_tests() {
  local results=$root/build/$1/tests.xml status=0
  rm -f "$results"
  local options=(--test-dir "$root/build/$1" --output-on-failure --output-junit "$results" -j "$(nproc)")
  if [ -t 1 ]; then
    ctest "${options[@]}" --progress "${@:2}" || status=$?
  else
    ctest "${options[@]}" "${@:2}" | sed '/^ *Start *[0-9]*: /d' || status=$?
  fi
  [ -f "$results" ] || die "ctest ended with $status before any test ran"
  python3 - "$results" <<'PYTHON' || status=1
import sys
from xml.etree import ElementTree
cases = ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
names = {"run": [], "fail": [], "notrun": [], "disabled": []}
for case in cases:
    names[case.get("status")].append(case.get("name"))
skipped = names["notrun"] + names["disabled"]
for word, group in (("Failed", names["fail"]), ("Skipped", skipped)):
    for name in group:
        print(f"{word}: {name}")
print(f"{len(names['run'])} passed, {len(names['fail'])} failed, {len(skipped)} skipped")
sys.exit(bool(names["fail"]) or not names["run"])
PYTHON
  return "$status"
}
