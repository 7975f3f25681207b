# backends.sh - sourced by other scripts here: which optional backends to build. BACKENDS holds names with commas or spaces between, or `all`.

# known_backends - print the optional backends, one per line.
known_backends() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' tools/packages/backends.list; }

# asked_backends [ALSO...] - print the backends that BACKENDS names, one per line; ALSO: names that are allowed besides.
asked_backends() {
    local name known names=
    known=$(known_backends && printf '%s\n' "$@")
    for name in $(tr , ' ' <<<"${BACKENDS:-}"); do
        if [ "$name" = all ]; then
            names+=" $(known_backends)"
        elif grep -qx -- "$name" <<<"$known"; then
            names+=" $name"
        else
            echo "FAILED: BACKENDS names '$name'; there are: all" $known "(onnxruntime and identity are always there)" >&2
            return 1
        fi
    done
    # shellcheck disable=SC2086
    [ -z "$names" ] || printf '%s\n' $names | sort -u
}
