# Owns one throw-away PostgreSQL. The first argument is the folder of its binaries. A second one is
# the port of a primary, and makes it a standby of that.
#
# First it prints the folder it has made, with a cluster in it: an empty one, or a copy of its
# primary's. Then it reads one command a line and answers each with "ok" or "failed". At the end of its input it stops the server and
# deletes the folder. The input is a pipe from the test process, so its end comes when that process
# ends, in whatever way. Commands that are under way are finished first: nothing is left half-made.

# A handler that does nothing, not an ignored signal: that would be passed on to the server.
trap : INT TERM HUP PIPE

bin=$1
primary=$2
name=advisory-postgres-XXXXXX
dir=$(mktemp -d "${TMPDIR:-/tmp}/$name" 2>/dev/null || mktemp -d "/tmp/$name") || exit 1
cd "$dir" || exit 1

quietly() {
    if "$@" </dev/null >>"$dir/setup.log" 2>&1; then echo ok; else echo failed; fi
}

control() {
    quietly "$bin/pg_ctl" -D "$dir/data" -w -t 60 "$@"
}

echo "$dir"
if [ -z "$primary" ]; then
    quietly "$bin/initdb" -D "$dir/data" -A trust -U postgres -E UTF8 --no-locale --no-sync
else
    quietly "$bin/pg_basebackup" -D "$dir/data" -h 127.0.0.1 -p "$primary" -U postgres \
        --write-recovery-conf --checkpoint=fast --no-sync
fi

while read -r command port; do
    case $command in
    start) control -l "$dir/server.log" -o "-p $port" start ;;
    stop) control -m fast stop ;;
    crash) control -m immediate stop ;;
    promote) control promote ;;
    esac
done

control -m immediate stop >/dev/null 2>&1
cd /
rm -rf "$dir"
