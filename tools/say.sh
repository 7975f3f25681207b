# say.sh - sourced by other scripts here: print messages, fail, hide the output of other programs, install packages, build once. TOOL is the
# name before each message.

say() { printf '%s: %s\n' "$TOOL" "$*"; }

# die WHAT [WHAT-TO-DO...] - print what failed and, on separate lines, what to do; ends the script.
die() {
    printf '%s: FAILED: %s\n' "$TOOL" "$1" >&2
    shift
    for line in "$@"; do printf '%s:   %s\n' "$TOOL" "$line" >&2; done
    exit 1
}

# quietly WHAT COMMAND... - run with its output in $OUT/WHAT.log; show the end of it on failure.
quietly() {
    local what=$1 log=$OUT/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die "$what; the whole log: $log"
    }
}

# missing_packages NAME... - print the packages that are not installed, one per line.
missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
}

# system_apt ARGUMENT... - apt-get for this machine's packages. Another one that runs (the machine's own upgrades) is waited for, five
# minutes: of the list's lock apt-get itself says only that it is taken.
system_apt() {
    local end=$((SECONDS + 300)) text
    until text=$(LC_ALL=C apt-get -q -o DPkg::Lock::Timeout=300 "$@" 2>&1); do
        if [[ $text != *"Could not get lock"* ]] || [ $SECONDS -ge $end ]; then
            printf '%s\n' "$text"
            return 1
        fi
        sleep 1
    done
    printf '%s\n' "$text"
}

# packages NAME... - install the Debian packages that are missing.
packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "Debian packages are missing" "run: sudo apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    quietly apt-update system_apt update
    quietly apt-install system_apt install -y --no-install-recommends "${missing[@]}"
}

# program NAME PACKAGE... - install the packages unless the program exists, from whatever source.
program() {
    command -v "$1" >/dev/null || packages "${@:2}"
}

# build_once SCRIPT SOURCES STEP... - do the steps unless $OUT was built from the script and the files of the folder SOURCES as they are; a
# stamp there remembers it.
build_once() {
    local script=$1 sources=$2 files print step begun=$SECONDS
    shift 2
    mkdir -p "$OUT/bin"
    mapfile -t files < <(find "$sources" -type f | sort)
    print=$(cat "$script" tools/say.sh "${files[@]}" | sha256sum | cut -c1-32)
    if [ "$(cat "$OUT/.stamp" 2>/dev/null)" = "$print" ]; then return 0; fi
    rm -f "$OUT/.stamp"
    for step in "$@"; do "$step"; done
    echo "$print" >"$OUT/.stamp"
    say "ready after $((SECONDS - begun)) s"
}

# What is built of Go is used a little: making it fast, and what debuggers read, takes longer than it runs.
export GOFLAGS="-buildvcs=false '-gcflags=all=-N -l' '-ldflags=-s -w'"

# go_programs SOURCES ARGUMENT... - build programs into $OUT/bin, with the versions that the module SOURCES pins, in a copy of it in
# $OUT/module. The arguments are those of go build.
go_programs() {
    local sources=$1 module=$OUT/module
    shift
    command -v go >/dev/null || die "there is no Go on this machine" "what is built needs the version that $sources/go.mod names"
    rm -rf "$module"
    cp -r "$sources" "$module"
    export HOME=${HOME:-$PWD/build/home} # Go keeps modules below it
    (cd "$module" && quietly go go build -mod=readonly -o "$OUT/bin/" "$@")
}
