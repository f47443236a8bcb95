#!/bin/sh
# Makes a Debian package of a build: slope_VERSION_ARCHITECTURE.deb in its folder. Usage: scripts/deb.sh BUILD
# What is installed is what `make install` installs, under /usr; it depends on the packages whose libraries are linked.
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define SLOPE_VERSION "\(.*\)"/\1/p' include/slope.h)
architecture=$(dpkg --print-architecture)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
DESTDIR=$stage cmake --install "$build" --prefix /usr --strip >/dev/null

# Python of Debian looks in python3/dist-packages, whatever its version.
for folder in "$stage"/usr/lib/python3.*/dist-packages; do
    [ -d "$folder" ] || continue
    mkdir -p "$stage/usr/lib/python3"
    mv "$folder" "$stage/usr/lib/python3/"
    rmdir "$(dirname "$folder")"
done
mkdir -p "$stage/usr/share/doc/slope" "$stage/DEBIAN"
cp LICENSE "$stage/usr/share/doc/slope/copyright"
cp -r docs examples "$stage/usr/share/doc/slope/"
gzip -9n < CHANGELOG.md > "$stage/usr/share/doc/slope/changelog.gz"

depends=""
for file in $(find "$stage/usr/bin" "$stage/usr/lib" -type f \( -name slope -o -name '*.so*' \)); do
    for library in $(objdump -p "$file" | sed -n 's/^ *NEEDED *//p'); do
        path=$(ldconfig -p | sed -n "s|.*$library .*=> ||p" | head -1)
        [ -n "$path" ] || continue
        path=$(readlink -f "$path")
        package=$(dpkg -S "$path" "${path#/usr}" 2>/dev/null | head -1 | cut -d: -f1)
        [ -n "$package" ] || continue
        case " $depends " in *" $package "*) ;; *) depends="$depends $package" ;; esac
    done
done
cat > "$stage/DEBIAN/control" <<CONTROL
Package: slope
Version: $version
Architecture: $architecture
Maintainer: The Slope authors <slope@localhost>
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Depends: $(echo $depends | sed 's/ /, /g')
Recommends: python3-numpy, gcc
Section: devel
Priority: optional
Description: compiler and library for differentiable programs in Slang
 Functions written in Slang and their gradients as machine code: a command, a
 library for C, a package for Python and an ahead-of-time compiler.
CONTROL
echo "activate-noawait ldconfig" > "$stage/DEBIAN/triggers"
package="$build/slope_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
echo "$package"
