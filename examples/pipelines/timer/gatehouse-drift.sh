#!/bin/sh
# Looks for drift in a clone of the policy's repository, as it is on its main branch now. For a timer: it says nothing
# unless the run itself fails; what was found, the webhook is told.
#
#   gatehouse-drift.sh [<file with settings>]
#
# Exit codes are those of gatehouse drift: 0 nothing, 2 something, 1 an error.
set -eu
if [ $# -gt 0 ]; then
  set -a
  . "$1"
  set +a
fi
: "${POLICY:?is the folder of the clone}" "${STACK:?is the name of the stack}"

# systemd says where credentials are; cron does not.
secrets=${CREDENTIALS_DIRECTORY:-/etc/gatehouse-drift/credentials}
export GATEHOUSE_API_KEY_FILE="$secrets/api-key"
export PULUMI_CONFIG_PASSPHRASE_FILE="$secrets/passphrase"
export GATEHOUSE_NOTIFY_URL_FILE="$secrets/webhook"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

drift() {
  cd "$POLICY"
  git pull --quiet --ff-only
  npm ci --no-audit --no-fund --loglevel=error
  # Flags are several words.
  # shellcheck disable=SC2086
  npx --no-install gatehouse drift . --stack "$STACK" --notify "${NOTIFY:-slack}" ${FLAGS:-}
}

code=0
# In a shell of its own, which set -e ends: in a function before || it would go on.
(set -eu; drift) >"$log" 2>&1 & wait $! || code=$?
case $code in
  0 | 2) ;;
  *) cat "$log" >&2 ;;
esac
exit "$code"
