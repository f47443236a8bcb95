#!/bin/sh
# Installs the Debian packages that building and testing need, if any is missing. As root it installs them and says so;
# as another user it prints the line to run. On other systems it only looks for the programs.
# With --all also what only some tests need, which are left out without it: PyTorch, Open MPI, matplotlib (some 200 MB).
set -eu

packages="gcc g++ libc6-dev cmake ninja-build clang clang-format llvm-19-dev llvm-19-tools libcmocka-dev libpng-dev gdb zlib1g-dev libzstd-dev pkg-config python3 python3-numpy python3-pytest"
# What differs between processors is compiled for the other one as well (scripts/check.py).
case $(uname -m) in
x86_64) packages="$packages libc6-dev-arm64-cross" ;;
aarch64) packages="$packages libc6-dev-amd64-cross" ;;
esac
# Elementary functions of several numbers at once, which the C library has on x86-64; looked for at run time, done without if absent.
if [ "$(uname -m)" = aarch64 ]; then packages="$packages libsleef3"; fi
if [ "${1:-}" = --all ]; then
    packages="$packages python3-torch openmpi-bin libopenmpi-dev python3-matplotlib"
fi
programs="gcc cmake ninja clang clang-format llvm-config-19 pkg-config python3"

if ! command -v dpkg-query >/dev/null 2>&1; then
    for program in $programs; do
        command -v "$program" >/dev/null 2>&1 && continue
        echo "setup: '$program' is missing, and this is no Debian where its package could be named" >&2
        exit 1
    done
    exit 0
fi

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    case $status in installed*) ;; *) missing="$missing $package" ;; esac
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ]; then
    echo "setup: packages are missing; run this once, then try again:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi

echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends $missing
