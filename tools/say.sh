# say.sh - sourced by other scripts here: print messages, fail, and hide the output of other programs. TOOL is the name before each message.

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

# packages NAME... - install the Debian packages that are missing.
packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "Debian packages are missing" "run: sudo apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    quietly apt-update apt-get update -q
    quietly apt-install apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# program NAME PACKAGE... - install the packages unless the program exists, from whatever source.
program() {
    command -v "$1" >/dev/null || packages "${@:2}"
}
