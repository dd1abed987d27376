# Owns one throw-away program. The script before this one tells what it is called, in `name`, and how
# it is made, commanded and ended, in the functions `make`, `obey` and `end`.
#
# First it prints the folder it has made, and whether the program could be made there. Then it reads
# one command a line and answers each with "ok" or "failed". At the end of its input it ends the
# program and deletes the folder. The input is a pipe from the test process, so its end comes when
# that process ends, in whatever way. Commands that are under way are finished first: nothing is left
# half-made.

# A handler that does nothing, not an ignored signal: that would be passed on to the program.
trap : INT TERM HUP PIPE

template=advisory-$name-XXXXXX
dir=$(mktemp -d "${TMPDIR:-/tmp}/$template" 2>/dev/null || mktemp -d "/tmp/$template") || exit 1
cd "$dir" || exit 1

quietly() {
    if "$@" </dev/null >>"$dir/setup.log" 2>&1; then echo ok; else echo failed; fi
}

echo "$dir"
quietly make

while read -r command; do
    # Split into words.
    # shellcheck disable=SC2086
    quietly obey $command
done

end >/dev/null 2>&1
cd /
rm -rf "$dir"
