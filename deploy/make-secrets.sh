#!/bin/sh
# Makes the secrets of compose.yaml that are missing, in secrets/. Those that are there stay. The folder is yours alone; the
# files in it can be read by the users of the containers, which see nothing else of it.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

make() { # NAME: a file with what comes in
    if [ -s "secrets/$1" ]; then cat >/dev/null; else cat >"secrets/$1"; echo "secrets/$1"; fi
    chmod 444 "secrets/$1"
}

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

random | make postgres_password
random | make secret_key
printf 'postgresql://longthread:%s@postgres/longthread' "$(cat secrets/postgres_password)" | make database_url
# The key of the model's provider: put yours in. It may be empty.
: | make llm_api_key
