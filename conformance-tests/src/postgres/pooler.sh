# A PgBouncer, whose configuration is in the file `pgbouncer.ini` when it is started. The argument is
# its program.
name=pgbouncer
program=$1

make() {
    :
}

obey() {
    case $1 in
    start)
        "$program" "$dir/pgbouncer.ini" >>"$dir/server.log" 2>&1 &
        pid=$!
        # It writes that file when it listens, and ends if it cannot.
        until [ -s "$dir/pgbouncer.pid" ]; do
            kill -0 "$pid" || return 1
            sleep 0.02
        done
        ;;
    esac
}

end() {
    kill -TERM "$pid"
    wait "$pid"
}
