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
  # shellcheck source=/dev/null
  . "$1"
  set +a
fi
: "${POLICY:?is the folder of the clone}"
[ -n "${TERRAFORM:-}" ] || : "${STACK:?is the name of the stack}"

# systemd says where credentials are; cron does not.
secrets=${CREDENTIALS_DIRECTORY:-/etc/gatehouse-drift/credentials}

umask 077
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
log=$temporary/log

# Where the secrets are, programs are told that need them, and no other command.
with_secrets() {
  GATEHOUSE_API_KEY_FILE="$secrets/api-key" GATEHOUSE_NOTIFY_URL_FILE="$secrets/webhook" \
    PULUMI_CONFIG_PASSPHRASE_FILE="$secrets/passphrase" "$@"
}

drift() {
  cd "$POLICY"
  # A run may have changed what Terraform, OpenTofu and gatehouse keep in the repository, which a pull would stop at.
  git reset --quiet --hard
  git clean --quiet --force -- .terraform.lock.hcl
  git pull --quiet --ff-only
  if [ -n "${TERRAFORM:-}" ]; then
    "$TERRAFORM" init -input=false -no-color
    with_secrets "$TERRAFORM" plan -input=false -no-color -lock=false -out="$temporary/plan"
    "$TERRAFORM" show -json "$temporary/plan" >"$temporary/plan.json"
    set -- gatehouse drift . --terraform "$temporary/plan.json"
  else
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    set -- npx --no-install gatehouse drift . --stack "$STACK"
  fi
  # Flags are several words.
  # shellcheck disable=SC2086
  with_secrets "$@" --notify "${NOTIFY:-slack}" ${FLAGS:-}
}

code=0
# In a shell of its own, which set -e ends: in a function before || it would go on.
(set -eu; drift) >"$log" 2>&1 &
child=$!
# No other step begins, and no plan stays behind.
trap 'kill "$child" 2>/dev/null; exit 143' HUP INT TERM
wait "$child" || code=$?
case $code in
  0 | 2) ;;
  *) cat "$log" >&2 ;;
esac
exit "$code"
