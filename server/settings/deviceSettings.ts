import { setting } from "./setting.ts";
import { domain, imageReference, wholeNumber } from "./values.ts";

/** Settings of devices, their limits and their agent. */
export const deviceSettings = {
  maximumPendingDevices: setting({
    variable: "GATEHOUSE_MAXIMUM_PENDING_DEVICES",
    flag: "--maximum-pending-devices",
    value: "number",
    about:
      "How many devices of a namespace may wait to be accepted: anybody who knows its id can enrol one; " +
      "0 or less: no limit",
    allowed: "a whole number of devices",
    fallback: "10000",
    schema: wholeNumber,
  }),
  maximumFirewallRules: setting({
    variable: "GATEHOUSE_MAXIMUM_FIREWALL_RULES",
    flag: "--maximum-firewall-rules",
    value: "number",
    about:
      "How many firewall rules a namespace may have: each login to its devices reads them; 0 or less: no limit",
    allowed: "a whole number of rules",
    fallback: "10000",
    schema: wholeNumber,
  }),
  maximumConnectors: setting({
    variable: "GATEHOUSE_MAXIMUM_CONNECTORS",
    flag: "--maximum-connectors",
    value: "number",
    about: "How many connectors a namespace may have; 0 or less: no limit",
    allowed: "a whole number of connectors",
    fallback: "100",
    schema: wholeNumber,
  }),
  maximumTunnels: setting({
    variable: "GATEHOUSE_MAXIMUM_TUNNELS",
    flag: "--maximum-tunnels",
    value: "number",
    about: "How many tunnels a device may have at a time; 0 or less: no limit",
    allowed: "a whole number of tunnels",
    fallback: "10",
    schema: wholeNumber,
  }),
  tunnelsDomain: setting({
    variable: "GATEHOUSE_TUNNELS_DOMAIN",
    flag: "--tunnels-domain",
    value: "domain",
    about: "Domain below which tunnels have their addresses; left out: the host that clients called",
    allowed: "a host name of labels of letters, digits and inner hyphens, with at most 220 characters",
    schema: domain.optional(),
  }),
  agentImage: setting({
    variable: "GATEHOUSE_AGENT_IMAGE",
    flag: "--agent-image",
    value: "image",
    about: "Container image of the agent that the install script runs, with its tag or digest",
    allowed: "a reference of a container image, like registry.example.org/agent:v0.19.0",
    fallback: "docker.io/shellhubio/agent:v0.19.0",
    schema: imageReference,
  }),
};
