# ports.sh - sourced by scripts that serve, after say.sh: are the ports free?

# ports_free COMMAND NAME=PORT... - die if somebody listens at one of these ports of this machine; COMMAND takes others by their names.
ports_free() {
    local each command=$1
    shift
    for each in "$@"; do
        if (exec 3<>"/dev/tcp/127.0.0.1/${each#*=}") 2>/dev/null; then
            die "port ${each#*=} of this machine is taken" \
                "end what listens there, or choose another: $command ${each%=*}=$((${each#*=} + 1000))"
        fi
    done
}
