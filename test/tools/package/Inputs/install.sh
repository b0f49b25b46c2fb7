#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh DEB SOURCES BUILD: installs the package, trains with it and removes
# it, in mounts of its own (unshare -m) without the sources and the build folder.
# The package goes into a folder with a copy of the system's list of packages, so
# that dpkg checks what it depends on and the system stays as it is.
set -euo pipefail
deb=$1 sources=$2 build=$3

place=/mnt
mount -t tmpfs tmpfs "$place"
cp "$deb" "$place/rota.deb"
mkdir -p "$place/root" "$place/dpkg/updates" "$place/dpkg/info" "$place/empty"
# Without an entry of rota itself, were it installed here.
awk -v RS= -v ORS='\n\n' '!/^Package: rota\n/' /var/lib/dpkg/status >"$place/dpkg/status"
# The others have no files there.
for list in /var/lib/dpkg/info/*.list; do
  : >"$place/dpkg/info/${list##*/}"
done
cd "$place/empty"
mount -t tmpfs tmpfs "$build"
mount -t tmpfs tmpfs "$sources"

package() { # dpkg without a log or a cache of its own in the system
  dpkg --admindir="$place/dpkg" --instdir="$place/root" --log=/dev/null "$@"
}
package --install "$place/rota.deb"
share=$place/root/usr/share/rota
export PATH=$place/root/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin
rota --version
rota train --model "$share/configs/tiny" --data /etc/passwd --mesh stage=2 \
  --microbatches 2 --batch-size 2 --sequence-length 16 --steps 2 --eval-interval 0 --json
rota-opt "$share/examples/linear.mlir" --differentiate | grep -o 'func.func @backward'
# The completion of "rota checkpoint v".
source "$place/root/usr/share/bash-completion/completions/rota"
COMP_WORDS=(rota checkpoint v) COMP_CWORD=2
_rota
echo "completes ${COMPREPLY[*]}"
package --purge rota
echo "left: $(find "$place/root" "$place/empty" -type f -o -type l)"
