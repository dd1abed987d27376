# A PostgreSQL. The first argument is the folder of its binaries. A second one is the data folder of
# a server that has been stopped, of which it is to be a standby.
name=postgres
bin=$1
primary=$2

control() {
    "$bin/pg_ctl" -D "$dir/data" -w -t 60 "$@"
}

# An empty cluster, or a copy of the primary's. Not by `pg_basebackup`, which some packages of
# PostgreSQL leave out.
make() {
    if [ -z "$primary" ]; then
        "$bin/initdb" -D "$dir/data" -A trust -U postgres -E UTF8 --no-locale --no-sync
    else
        cp -R "$primary" "$dir/data" && touch "$dir/data/standby.signal"
    fi
}

obey() {
    case $1 in
    start) control -l "$dir/server.log" -o "-p $2" start ;;
    stop) control -m fast stop ;;
    crash) control -m immediate stop ;;
    promote) control promote ;;
    esac
}

end() {
    control -m immediate stop
}
