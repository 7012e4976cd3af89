#!/bin/sh
# Installs the agent that connects this machine to the service, as a container of Docker or Podman.
#
#   curl -fsSL 'https://gate.example.org/install.sh?tenant_id=<namespace id>' | sh
#
# These variables override the parameters in the address of the script:
#   TENANT_ID            id of the namespace that the device enrolls in
#   SERVER_ADDRESS       address of the service
#   PREFERRED_HOSTNAME   name of the device; default: the machine's MAC address
#   PREFERRED_IDENTITY   identity of the device; default: the machine's MAC address
#   KEEPALIVE_INTERVAL   seconds between two keep-alive messages
#   AGENT_IMAGE          image of the agent
#   CONTAINER_ENGINE     docker or podman; default: the installed engine
#   CONTAINER_NAME       name of the container; default: gatehouse-agent
set -eu

# @DEFAULTS@

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

find_engine() {
  for engine in docker podman; do
    if command -v "$engine" >/dev/null 2>&1; then
      printf '%s' "$engine"
      return
    fi
  done
  fail 'neither docker nor podman is installed. Install one of them, then run this script again'
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    fail 'root permissions are required. Run this script as root, or install sudo'
  fi
}

# A function, so that an incompletely downloaded script does nothing.
main() {
  server_address=${SERVER_ADDRESS:-$default_server_address}
  tenant_id=${TENANT_ID:-$default_tenant_id}
  agent_image=${AGENT_IMAGE:-$default_agent_image}
  hostname=${PREFERRED_HOSTNAME:-$default_preferred_hostname}
  identity=${PREFERRED_IDENTITY:-$default_preferred_identity}
  interval=${KEEPALIVE_INTERVAL:-$default_keepalive_interval}
  container=${CONTAINER_NAME:-gatehouse-agent}
  [ -n "$tenant_id" ] || fail 'the namespace id is missing. Set TENANT_ID, or add tenant_id to the address of this script'
  engine=${CONTAINER_ENGINE:-$(find_engine)}
  case $engine in
    docker | podman) ;;
    *) fail 'CONTAINER_ENGINE must be docker or podman' ;;
  esac

  printf 'Fetching %s\n' "$agent_image"
  as_root "$engine" pull "$agent_image"
  if as_root "$engine" container inspect "$container" >/dev/null 2>&1; then
    as_root "$engine" rm --force "$container" >/dev/null
  fi

  set -- --env "SHELLHUB_SERVER_ADDRESS=$server_address" --env "SHELLHUB_TENANT_ID=$tenant_id" \
    --env SHELLHUB_PRIVATE_KEY=/host/etc/gatehouse-agent.key
  [ -z "$hostname" ] || set -- "$@" --env "SHELLHUB_PREFERRED_HOSTNAME=$hostname"
  [ -z "$identity" ] || set -- "$@" --env "SHELLHUB_PREFERRED_IDENTITY=$identity"
  [ -z "$interval" ] || set -- "$@" --env "SHELLHUB_KEEPALIVE_INTERVAL=$interval"
  [ "$engine" != podman ] || set -- "$@" --security-opt label=disable
  # A login to the device is a login to the machine, so the agent needs access to the whole machine.
  as_root "$engine" run --detach "--name=$container" --restart=unless-stopped --privileged --net=host --pid=host \
    --volume /:/host --volume /dev:/dev --volume /etc/resolv.conf:/etc/resolv.conf \
    --volume /var/run:/var/run --volume /var/log:/var/log --volume /tmp:/tmp \
    "$@" "$agent_image" >/dev/null
  printf 'The agent runs as the container %s. The device is pending in the namespace %s. Accept it to allow logins.\n' \
    "$container" "$tenant_id"
}

main
