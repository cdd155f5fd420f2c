#!/bin/sh
python={python}
app={app}
fail() {{
    echo "{name}: $1" >&2
    echo "  run install.py again, from a copy of the repository; with --uninstall it takes the rest out" >&2
}}
runs() {{
    [ -x "$1" ] || return 1
    [ "$doctor" = no ] || "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}}
[ -f "$app/session_memory/cli.py" ] || {{ fail "$app is gone, so no hook and no command works"; exit 1; }}
case "${{1-}}" in doctor) doctor=yes ;; *) doctor=no ;; esac
if ! runs "$python"; then
    doctor=yes
    other=$(command -v python3) && runs "$other" || {{
        fail "$python does not run, nor is there a python3 from 3.10 on"
        exit 1
    }}
    fail "$python does not run, so no hook runs; this is run with $other"
    python=$other
fi
exec "$python" -I -S -c {code} "$app" {packages} "$0" "$@"
