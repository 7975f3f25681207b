#!/bin/bash
# deb.sh [FOLDER] - make a Debian package of the build tree build/release, with the backends that BACKENDS names: FOLDER/nereid_VERSION_ARCH.deb
# (build/dist). DEB_VERSION: another version than the project's. DEB_COMPRESS: gzip is faster than xz. The same sources give the same package, byte for byte.
set -euo pipefail
cd "$(dirname "$0")/.."
TOOL=deb
. tools/say.sh
dist=${1:-build/dist}
mkdir -p "$dist"
work=$(mktemp -d "$dist/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
OUT=$work
stage=$work/stage
tree=$stage/usr/lib/nereid
version=${DEB_VERSION:-$(sed -nE 's/^project\(nereid VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)}
arch=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}
export SOURCE_DATE_EPOCH LC_ALL=C
umask 022

DESTDIR=$(realpath "$work")/stage quietly install tools/install.sh /usr/lib/nereid

# depends - the packages whose libraries the files need, with the versions that have what they use.
depends() {
    local files folders
    mkdir -p "$work/debian"
    printf 'Source: nereid\n\nPackage: nereid\nArchitecture: any\n' >"$work/debian/control"
    mapfile -t files < <(cd "$work" && find stage -type f -name '*.so*' -o -type f -path '*/bin/nereid')
    mapfile -t folders < <(cd "$work" && find stage -type d | sed 's/^/-l/')
    (cd "$work" && dpkg-shlibdeps --ignore-missing-info -Sstage "${folders[@]}" -O "${files[@]}" 2>shlibdeps.log) | sed -n 's/^shlibs:Depends=//p'
}

put() { install -D -m "$1" "deploy/debian/$2" "$stage/$3"; }

needs=$(depends)
[ -n "$needs" ] || die "dpkg-shlibdeps found no dependency" "$(tail -n 3 "$work/shlibdeps.log")"
put 644 nereid.service usr/lib/systemd/system/nereid.service
put 644 nereid-handover.target usr/lib/systemd/system/nereid-handover.target
put 644 nereid.conf etc/nereid/nereid.conf
put 755 nereid-handover usr/sbin/nereid-handover
put 644 README.Debian usr/share/doc/nereid/README.Debian
# The second server of a hand-over: the same, without a page of metrics; it is not started with the machine. Once it serves, the first is restarted.
# It comes after the first: so it is the first to end, and who stops the service waits for both.
sed -e '/^\[Install\]/,$d' -e 's/^\(Description=.*\)/\1, while another one takes its place/' \
    -e 's/^Wants=.*/& nereid-handover.target/' -e 's/^After=.*/& nereid.service/' \
    -e 's|^ExecStart=.*|ExecStartPre=+/usr/sbin/nereid-handover second-starts\n& --allow-metrics=false $NEREID_NEXT|' -e 's/^Environment=.*/& NEREID_NEXT=/' \
    -e 's/^# A hand-over ends.*/# The rest of a hand-over is for systemd, whatever becomes of the command./' \
    -e 's|^ExecStartPost=.*|ExecStartPost=+/usr/sbin/nereid-handover second-serves\nExecStopPost=-+rm -f /run/nereid-models|' \
    -e 's/^Restart=.*/Restart=no/' deploy/debian/nereid.service >"$stage/usr/lib/systemd/system/nereid-next.service"
mkdir -p "$stage/usr/bin"
ln -s ../lib/nereid/bin/nereid "$stage/usr/bin/nereid"

packages=()
for package in $(tr , '\n' <<<"$needs" | sed -E 's/^ *([^ |]+).*/\1/' | sort -u); do
    packages+=("$package=$(dpkg-query -W -f '${Version}' "$package")")
done
build/venv/bin/python tools/sbom.py "$tree" "$version" "${packages[@]}" >"$stage/usr/share/doc/nereid/sbom.cdx.json"
{
    cat THIRD_PARTY
    printf '\nThe licence of Nereid\n=====================\n\n'
    cat LICENSE
} >"$stage/usr/share/doc/nereid/copyright"
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

control=$stage/DEBIAN
mkdir "$control"
for script in postinst prerm postrm; do install -m 755 "deploy/debian/$script" "$control/$script"; done
echo /etc/nereid/nereid.conf >"$control/conffiles"
(cd "$stage" && find usr etc -type f | sort | xargs md5sum) >"$control/md5sums"
cat >"$control/control" <<END
Package: nereid
Version: $version
Architecture: $arch
Maintainer: Nereid maintainers <maintainers@localhost>
Section: net
Priority: optional
Installed-Size: $(du -ks --exclude=DEBIAN "$stage" | cut -f1)
Depends: $needs, passwd
Recommends: libpcre2-8-0, libyaml-0-2, libzstd1, python3
Description: inference server that takes the place of Triton
 Serves models over HTTP and gRPC with the protocols, the repositories, the
 configurations and the plug-ins of NVIDIA's Triton Inference Server.
END
find "$control" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
package=$dist/nereid_${version}_$arch.deb
dpkg-deb --root-owner-group "-Z${DEB_COMPRESS:-xz}" --build "$stage" "$package" >/dev/null
say "$package: $(($(stat -c %s "$package") / 1000000)) MB, $(du -s --block-size=MB --exclude=DEBIAN "$stage" | cut -f1) installed"
