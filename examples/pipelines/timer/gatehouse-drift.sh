#!/bin/sh
# Checks for drift with the latest main branch in a clone of the policy's repository. The script is for a timer, such as
# cron: it prints output only if the run fails, and sends findings to the webhook. With COMMAND=expire, the script removes
# expired objects instead, and also prints output if expired objects remain. With COMMAND=rotate, it rotates the API keys
# of the program that are due.
#
#   [COMMAND=expire|rotate] gatehouse-drift.sh [<settings file>]
#
# Exit codes, the same as those of the command: 0 = no findings, 2 = drift found, or expired objects remain, 1 = error.
set -eu
if [ $# -gt 0 ]; then
  set -a
  # shellcheck source=/dev/null
  . "$1"
  set +a
fi
: "${POLICY:?is not set. Set it to the directory of the clone}"
[ -n "${TERRAFORM:-}" ] || : "${STACK:?is not set. Set it to the name of the stack}"

command=${COMMAND:-drift}
case $command in
  drift) folder=credentials ;;
  expire | rotate) folder=$command-credentials ;;
  *) echo "COMMAND must be drift, expire or rotate, not $command" >&2; exit 1 ;;
esac
if [ "$command" = rotate ] && [ -n "${TERRAFORM:-}" ]; then
  echo "COMMAND=rotate needs a Pulumi program. For Terraform, increase key_wo_version" >&2
  exit 1
fi

# systemd sets CREDENTIALS_DIRECTORY; cron does not set this variable.
secrets=${CREDENTIALS_DIRECTORY:-/etc/gatehouse-drift/$folder}

umask 077
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
log=$temporary/log

# Passes the paths of the secrets only to the commands that need them.
with_secrets() {
  if [ "$command" = rotate ]; then
    GATEHOUSE_USERNAME_FILE="$secrets/username" GATEHOUSE_PASSWORD_FILE="$secrets/password" \
      PULUMI_CONFIG_PASSPHRASE_FILE="$secrets/passphrase" "$@"
    return
  fi
  GATEHOUSE_API_KEY_FILE="$secrets/api-key" GATEHOUSE_NOTIFY_URL_FILE="$secrets/webhook" \
    PULUMI_CONFIG_PASSPHRASE_FILE="$secrets/passphrase" "$@"
}

run() {
  cd "$POLICY"
  # The removal of expired objects needs only the state. It works even if git or npm's registry cannot be reached.
  if [ "$command" != expire ]; then
    # Reverts files in the repository that Terraform, OpenTofu or gatehouse changed in an earlier run, since they would
    # block a pull.
    git reset --quiet --hard
    git clean --quiet --force -- .terraform.lock.hcl
    git pull --quiet --ff-only
  fi
  if [ -n "${TERRAFORM:-}" ]; then
    "$TERRAFORM" init -input=false -no-color
    with_secrets "$TERRAFORM" plan -input=false -no-color -lock=false -out="$temporary/plan"
    "$TERRAFORM" show -json "$temporary/plan" >"$temporary/plan.json"
    set -- gatehouse "$command" . --terraform "$temporary/plan.json"
  else
    if [ "$command" != expire ] || [ ! -d node_modules ]; then
      npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    fi
    set -- npx --no-install gatehouse "$command" --stack "$STACK"
    [ "$command" = rotate ] || set -- "$@" .
  fi
  # The flags are not quoted, since they contain several words.
  # shellcheck disable=SC2086
  case $command in
    drift) set -- "$@" --notify "${NOTIFY:-slack}" ${FLAGS:-} ;;
    expire) set -- "$@" --yes ${EXPIRE_FLAGS:-} ;;
    rotate) set -- "$@" --yes ${ROTATE_FLAGS:-} ;;
  esac
  with_secrets "$@"
}

code=0
# The function runs in a subshell, so that set -e is effective. In a function before ||, the shell ignores set -e.
(set -eu; run) >"$log" 2>&1 &
child=$!
# On a signal, starts no further step and deletes the plan.
trap 'kill "$child" 2>/dev/null; exit 143' HUP INT TERM
wait "$child" || code=$?
case $command$code in
  drift0 | drift2 | expire0 | rotate0) ;;
  *) cat "$log" >&2 ;;
esac
exit "$code"
