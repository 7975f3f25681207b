#!/bin/bash
# setup.sh - install what is missing for one or more purposes.
#
#   tools/setup.sh GROUP...      GROUP: run, python, test, bench, lint, fuzz, cov, others, debian, example-NAME, or a backend of
#                               tools/packages/backends.list
#
# Debian packages come from the machine's own apt configuration (tools/packages/<group>.apt),
# libraries that the distribution has too old are unpacked under build/deps from a newer suite of
# the same mirror (tools/packages/newer.list), Python packages go into build/venv with every hash
# pinned (tools/packages/<group>.lock); those that carry the runtime of a backend, or the models of an example, are unpacked under build/deps/<group>, and its Java
# archives (tools/packages/<group>.maven) under build/deps/<group>.maven. Nothing outside apt's own files and build/ is touched.
# Debian packages that would start a service are unpacked under build/deps/<group> (tools/packages/<group>.unpacked).
# A stamp under build/.setup remembers what was done, so a second call returns at once.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
TOOL=setup
. tools/say.sh
. tools/backends.sh

NEWER_SUITE=trixie
PACKAGES=tools/packages
STAMPS=build/.setup
DEPS=build/deps
VENV=build/venv
MAVEN_COPY=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# known_unpacked - print the groups whose lock is unpacked under build/deps, one per line: backends, models that others made, examples.
known_unpacked() {
    known_backends
    echo others
    (cd "$PACKAGES" && printf '%s\n' example-*.lock) | sed 's/\.lock$//'
}
# Reads to the end: with -q grep would end known_unpacked by a signal now and then, and pipefail would take that for a no.
is_unpacked() { known_unpacked | grep -x -- "$1" >/dev/null; }

# The groups whose lists a group needs: itself and what it builds upon.
groups_of() {
    case "$1" in
    run) echo run ;;
    python) echo run python ;;
    test) echo run "$(known_backends | xargs)" example-speech test ;;
    bench) echo run test bench ;;
    lint) echo run lint ;;
    fuzz) echo run fuzz ;;
    cov) echo run test cov ;;
    debian) echo run debian ;;
    *)
        is_unpacked "$1" ||
            die "'$1' is no group" "known groups: run python test bench lint fuzz cov debian" $(known_unpacked)
        echo run "$1"
        ;;
    esac
}

lists_of() {
    local group file
    for group in $(groups_of "$1"); do
        for file in "$PACKAGES/$group.apt" "$PACKAGES/$group.unpacked" "$PACKAGES/$group.lock" "$PACKAGES/$group.maven" "$PACKAGES/$group.npm"; do
            if [ -f "$file" ]; then echo "$file"; fi
        done
    done
}

# fingerprint GROUP - one word that changes when anything this group installs changes.
fingerprint() {
    local files
    files=$(lists_of "$1")
    # shellcheck disable=SC2086
    cat tools/setup.sh "$PACKAGES/newer.list" $files | sha256sum | cut -c1-32
}

read_list() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"; }

# run_logged WHAT LOG HINT COMMAND... - run quietly; on failure show the end of the log and stop.
run_logged() {
    local what=$1 log=$2 hint=$3
    shift 3
    if ! "$@" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "$what" "the whole log: $log" "$hint"
    fi
}

APT_HINT="check the machine's network and /etc/apt, then run the same command again"
APT_UPDATED=no

apt_refresh() {
    [ "$APT_UPDATED" = no ] || return 0
    say "refreshing the package lists"
    run_logged "apt-get update" "$STAMPS/apt-update.log" "$APT_HINT" system_apt update
    APT_UPDATED=yes
}

# apt_install PACKAGE... - install those that are missing.
apt_install() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "${#missing[@]} Debian packages are missing and only root can install them" \
        "run: sudo apt-get install ${missing[*]}" "then run the same command again"
    apt_refresh
    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    run_logged "apt-get install ${missing[*]}" "$STAMPS/apt-install.log" "$APT_HINT" \
        system_apt install -y --no-install-recommends "${missing[@]}"
}

# mirror - the first Debian archive of this machine's apt configuration that is not the security
# archive. Reads both forms: one line per source, and deb822 stanzas.
mirror() {
    local files=() file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        if [ -f "$file" ]; then files+=("$file"); fi
    done
    {
        if [ ${#files[@]} -gt 0 ]; then
            sed -nE 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+)[[:space:]].*/\2/p' "${files[@]}"
        fi
        for file in /etc/apt/sources.list.d/*.sources; do
            if [ -f "$file" ]; then sed -nE 's/^URIs:[[:space:]]*([^[:space:]]+).*/\1/p' "$file"; fi
        done
    } | grep -E '/debian/?$' | head -n 1
}

# private_apt COMMAND... - apt with lists, cache and sources of its own under build/.
private_apt() {
    local root=$ROOT/build/.apt tool=$1
    shift
    "$tool" -o "Dir::State::Lists=$root/lists" -o "Dir::Cache=$root/cache" \
        -o "Dir::Etc::sourcelist=$root/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o APT::Get::List-Cleanup=0 -o Acquire::Languages=none -o APT::Sandbox::User=root \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false "$@"
}

private_apt_prepare() {
    local root=build/.apt archive
    [ ! -f "$root/ready" ] || return 0
    archive=$(mirror) || true
    [ -n "$archive" ] || die "no Debian archive found in this machine's apt configuration" \
        "looked at /etc/apt/sources.list and /etc/apt/sources.list.d for an address ending in /debian"
    rm -rf "$root"
    mkdir -p "$root/lists/partial" "$root/cache/archives/partial" "$root/debs"
    echo "deb [signed-by=$KEYRING] $archive $NEWER_SUITE main" >"$root/sources.list"
    say "reading the package list of $NEWER_SUITE (kept under build/.apt)"
    if ! private_apt apt-get update -q >"$STAMPS/newer-update.log" 2>&1 ||
        grep -qE '^(W|E):.*(NO_PUBKEY|not signed)' "$STAMPS/newer-update.log"; then
        [ "$(id -u)" = 0 ] || die "the archive's key for $NEWER_SUITE is not on this machine" \
            "run: sudo apt-get install debian-archive-keyring"
        apt_refresh
        run_logged "apt-get install debian-archive-keyring" "$STAMPS/keyring.log" "$APT_HINT" \
            system_apt install -y debian-archive-keyring
        run_logged "reading the package list of $NEWER_SUITE" "$STAMPS/newer-update.log" \
            "$APT_HINT" private_apt apt-get update -q
    fi
    touch "$root/ready"
}

# download PACKAGE - into build/.apt/debs; a shell of its own, since apt writes where it stands.
download() { (cd build/.apt/debs && private_apt apt-get download -q "$1"); }

# unpack PACKAGE MINIMUM - download from the newer suite and unpack under build/deps; leaves the
# name of the unpacked .deb in UNPACKED.
unpack() {
    local package=$1 minimum=$2 version
    private_apt_prepare
    version=$(private_apt apt-cache show "$package" 2>/dev/null | sed -n 's/^Version: //p' | head -n 1)
    [ -n "$version" ] || die "$package is not in $NEWER_SUITE" "$APT_HINT"
    dpkg --compare-versions "$version" ge "$minimum" ||
        die "$package $version is too old, $minimum is the oldest that will do"
    say "unpacking $package $version under $DEPS"
    rm -f "build/.apt/debs/${package}"_*.deb
    run_logged "downloading $package" "$STAMPS/download.log" "$APT_HINT" download "$package"
    UNPACKED=$(ls "build/.apt/debs/${package}"_*.deb)
    mkdir -p "$DEPS"
    dpkg -x "$UNPACKED" "$DEPS"
}

# A .pc file says prefix=/usr; make it say where it now lies.
relocate_pc_files() {
    # shellcheck disable=SC2016
    find "$DEPS" -name '*.pc' -exec sed -i -E -e 's|^prefix=.*|prefix=${pcfiledir}/../../..|' \
        -e 's|^([a-z_]+=)/usr|\1${prefix}|' {} +
}

# install_unpacked FILE - unpack under build/deps/<name of FILE> Debian packages of this machine's own suite which, installed, would start
# a service.
install_unpacked() {
    local file=$1 target package
    target=$DEPS/$(basename "$file" .unpacked)
    apt_refresh
    rm -rf "$target" build/.apt/unpacked
    mkdir -p "$target" build/.apt/unpacked
    while read -r package; do
        say "unpacking $package under $target"
        run_logged "downloading $package" "$STAMPS/download.log" "$APT_HINT" \
            env --chdir build/.apt/unpacked apt-get -o APT::Sandbox::User=root download -q "$package"
        dpkg -x "build/.apt/unpacked/${package}"_*.deb "$target"
    done < <(read_list "$file")
}

install_newer() {
    local package minimum runtime candidate library
    while read -r package minimum runtime; do
        candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: //p')
        if [ -n "$candidate" ] && [ "$candidate" != "(none)" ] &&
            dpkg --compare-versions "$candidate" ge "$minimum"; then
            apt_install "$package"
            continue
        fi
        unpack "$package" "$minimum"
        [ "$runtime" = yes ] || continue
        # The development package depends on exactly one library package: the one it links to.
        library=$(dpkg-deb -f "$UNPACKED" Depends | tr ',' '\n' | sed -E 's/^ *([^ ]+).*/\1/' |
            grep -E '^lib' | grep -vE '^libc[0-9]' | head -n 1)
        [ -n "$library" ] || die "$package names no library package"
        unpack "$library" 0
    done < <(read_list "$PACKAGES/newer.list")
    if [ -d "$DEPS" ]; then relocate_pc_files; fi
}

make_venv() {
    if [ -e "$VENV/.made" ] && "$VENV/bin/python" -c 'import pip' 2>/dev/null; then return 0; fi # pip may be there in part
    say "making the Python environment $VENV"
    rm -rf "$VENV" "$STAMPS"/*.lock.done
    run_logged "python3 -m venv $VENV" "$STAMPS/venv.log" "is python3-venv installed?" \
        /usr/bin/python3 -m venv "$VENV"
    touch "$VENV/.made"
}

# install_python LOCK - bring build/venv to what the lock says. A lock that begins with "# without dependencies" names all there is.
install_python() {
    local lock=$1 count more=()
    if grep -q '^# without dependencies' "$lock"; then more=(--no-deps); fi
    count=$(grep -cE '^[a-zA-Z0-9].*==' "$lock")
    say "installing $count Python packages into $VENV (the first time this downloads them)"
    run_logged "pip install -r $lock" "$STAMPS/pip.log" \
        "check the machine's network and pip's configuration, then run the same command again" \
        "$VENV/bin/python" -m pip install -q --disable-pip-version-check --no-input \
        --only-binary :all: --require-hashes "${more[@]}" -r "$lock"
}

# keep_only FOLDER PATH... - throw away what lies in the folder besides these paths.
keep_only() {
    local folder=$1 path
    shift
    for path; do
        mkdir -p "$folder.kept/$(dirname "$path")"
        mv "$folder/$path" "$folder.kept/$path"
    done
    rm -rf "$folder"
    mv "$folder.kept" "$folder"
}

# install_runtime LOCK - bring build/deps/<name of LOCK> to what the lock of a backend, of an example or of the models that others made says, without what the packages would need in Python. A
# line "# platform: NAME" takes the package that was made for another system, "# keeps: PATH..." no more of it than that.
install_runtime() {
    local lock=$1 backend target platform keeps more=()
    backend=$(basename "$lock" .lock)
    target=$DEPS/$backend
    platform=$(sed -n 's/^# platform: //p' "$lock")
    read -r -a keeps < <(sed -n 's/^# keeps: //p' "$lock") || true
    if [ -n "$platform" ]; then more=(--platform "$platform" --python-version 3.11); fi
    say "unpacking '$backend' under $target (the first time this downloads it)"
    rm -rf "$target.new" "$target.new.kept"
    run_logged "pip install -r $lock" "$STAMPS/pip-$backend.log" \
        "check the machine's network and pip's configuration, then run the same command again" \
        "$VENV/bin/python" -m pip install -q --disable-pip-version-check --no-input \
        --only-binary :all: --require-hashes --no-deps --no-compile "${more[@]}" --target "$target.new" -r "$lock"
    if [ ${#keeps[@]} -gt 0 ]; then keep_only "$target.new" "${keeps[@]}"; fi
    rm -rf "$target"
    mv "$target.new" "$target"
}

# install_archives FILE - bring build/deps/<name of FILE> to what FILE names, a line "GROUP:NAME:VERSION:jar:CLASSIFIER SHA256" each.
install_archives() {
    local file=$1 target artifact hash archive
    target=$DEPS/$(basename "$file")
    say "unpacking Java archives under $target (the first time this downloads them)"
    rm -rf "$target.new"
    mkdir -p "$target.new"
    while read -r artifact hash; do
        rm -rf "$target.new/.jar"
        run_logged "mvn $artifact" "$STAMPS/maven.log" "check the machine's network and Maven's configuration, then run the same command again" \
            mvn -B -q "$MAVEN_COPY" "-Dartifact=$artifact" "-DoutputDirectory=$ROOT/$target.new/.jar" "-Dmaven.repo.local=$ROOT/$target.new/.repository"
        archive=$(echo "$target.new/.jar"/*.jar)
        echo "$hash $archive" | sha256sum --check --quiet --strict ||
            die "$artifact is not the archive that $file pins" "its hash should be $hash"
        "$VENV/bin/python" -m zipfile -e "$archive" "$target.new"
    done < <(read_list "$file")
    rm -rf "$target.new/.jar" "$target.new/.repository" "$target"
    mv "$target.new" "$target"
}

# install_npm FILE - unpack under build/deps/npm what FILE names, a line "NAME VERSION SHA256" each: files for browsers, of which nothing
# is run here. Where npm is not, they are left out, and so is what needs them.
install_npm() {
    local file=$1 name version hash archive
    while read -r name version hash; do
        rm -rf "$DEPS/npm/$name" "$DEPS/npm/.pack"
        mkdir -p "$DEPS/npm/$name" "$DEPS/npm/.pack"
        run_logged "npm pack $name" "$STAMPS/npm.log" "check the machine's network and npm's configuration, then run the same command again" \
            npm pack --silent --pack-destination "$DEPS/npm/.pack" "$name@$version"
        archive=$(echo "$DEPS/npm/.pack"/*.tgz)
        echo "$hash $archive" | sha256sum --check --quiet --strict || die "$name $version is not the package that $file pins" "its hash should be $hash"
        tar -xzf "$archive" -C "$DEPS/npm/$name" --strip-components 1
    done < <(read_list "$file")
    rm -rf "$DEPS/npm/.pack"
}

# once FILE COMMAND... - run the command unless it has succeeded with FILE as it now is.
once() {
    local file=$1 stamp print
    shift
    stamp=$STAMPS/$(basename "$file").done
    print=$(sha256sum <"$file")
    if [ "$(cat "$stamp" 2>/dev/null)" = "$print" ]; then return 0; fi
    rm -f "$stamp" # of another FILE, which may come back after this was interrupted
    "$@"
    echo "$print" >"$stamp"
}

# still_there - what a stamp vouches for has not been deleted behind its back.
still_there() {
    local each
    for each in cmake ninja gcc protoc-c; do
        command -v "$each" >/dev/null || return 1
    done
    [ -x "$VENV/bin/python" ] && [ -d "$DEPS" ]
}

# What build/ takes in the end, in MiB: downloads, the virtual environment, and what the tests build.
mib_of() {
    case "$1" in
    test | bench | cov) echo 5200 ;;
    *) echo 1000 ;;
    esac
}

# check_room GROUP - said before anything is downloaded: half an hour later it would be an error of whoever writes last.
check_room() {
    local free need
    need=$(mib_of "$1")
    free=$(df -Pm build | awk 'NR == 2 { print $4 }')
    [ -e "$STAMPS/newer.list.done" ] || [ "$free" -ge "$need" ] ||
        die "'$1' needs $need MiB under $PWD/build, and $free MiB are free there" "free some, or clone onto a larger disk, then run the same command again"
}

setup_group() {
    local group=$1 stamp=$STAMPS/$1.stamp print part lock start=$SECONDS packages=()
    print=$(fingerprint "$group")
    if [ "$(cat "$stamp" 2>/dev/null)" = "$print" ] && still_there; then return 0; fi
    rm -f "$stamp"
    [ -d "$DEPS" ] || rm -f "$STAMPS"/*.done
    say "preparing for '$group'; the first time takes some minutes"
    mkdir -p "$STAMPS"
    check_room "$group"
    for part in $(groups_of "$group"); do
        if [ -f "$PACKAGES/$part.apt" ]; then
            mapfile -t -O ${#packages[@]} packages < <(read_list "$PACKAGES/$part.apt")
        fi
    done
    apt_install "${packages[@]}"
    once "$PACKAGES/newer.list" install_newer
    for part in $(groups_of "$group"); do
        if [ -f "$PACKAGES/$part.unpacked" ]; then once "$PACKAGES/$part.unpacked" install_unpacked "$PACKAGES/$part.unpacked"; fi
    done
    make_venv
    for part in $(groups_of "$group"); do
        lock=$PACKAGES/$part.lock
        if is_unpacked "$part"; then
            if [ -f "$lock" ]; then once "$lock" install_runtime "$lock"; fi
        elif [ -f "$lock" ]; then
            once "$lock" install_python "$lock"
        fi
        if [ -f "$PACKAGES/$part.npm" ]; then
            if command -v npm >/dev/null; then
                once "$PACKAGES/$part.npm" install_npm "$PACKAGES/$part.npm"
            else
                say "there is no npm on this machine: left out are $(read_list "$PACKAGES/$part.npm" | cut -d' ' -f1 | tr '\n' ' ')"
            fi
        fi
        if [ -f "$PACKAGES/$part.maven" ]; then once "$PACKAGES/$part.maven" install_archives "$PACKAGES/$part.maven"; fi
    done
    echo "$print" >"$stamp"
    say "'$group' is ready after $((SECONDS - start)) s"
}

[ $# -gt 0 ] || die "name a group" "usage: tools/setup.sh run|python|test|bench|lint|fuzz|cov|others|example-<name>|<backend> ..."
for group in "$@"; do
    groups_of "$group" >/dev/null
    setup_group "$group"
done
