# backends.sh - sourced by the scripts beside it: which backends were asked for. BACKENDS holds names between commas or spaces, or `all`.

# known_backends - those that are there when asked for, a line each.
known_backends() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' tools/packages/backends.list; }

# asked_backends [ALSO...] - those that BACKENDS names, a line each; ALSO are further names that the caller knows.
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
