import { z } from "zod";
import { setting } from "./setting.ts";
import { address, countOrNone, listeningPort, wholeNumber } from "./values.ts";

/** Settings of the SSH entry. */
export const sshSettings = {
  sshHost: setting({
    variable: "GATEHOUSE_SSH_HOST",
    flag: "--ssh-host",
    value: "address",
    about: "Address to listen on for SSH",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  sshPort: setting({
    variable: "GATEHOUSE_SSH_PORT",
    flag: "--ssh-port",
    value: "number",
    about:
      "Port to listen on for SSH to devices, `ssh login@namespace.device@host`; left out: there is no SSH entry; 0: " +
      "any free one, which the log line `listening for SSH` names",
    allowed: "a whole number from 0 to 65535",
    schema: listeningPort.optional(),
  }),
  sshHostKeyFile: setting({
    variable: "GATEHOUSE_SSH_HOST_KEY_FILE",
    flag: "--ssh-host-key-file",
    value: "file",
    about:
      "Private key by which clients recognise the SSH entry, the same on all instances; left out: ssh_host_ed25519_key " +
      "in the data folder, made at the first start",
    allowed:
      "the path of a private key without a passphrase, Ed25519, ECDSA or RSA, that not everybody may read",
    schema: z.string().min(1).optional(),
  }),
  sshEnvironment: setting({
    variable: "GATEHOUSE_SSH_ENVIRONMENT",
    flag: "--ssh-environment",
    value: "names",
    about: "Environment variables that clients may set at devices, with * at the end of a name for any rest",
    allowed: "names of letters, digits and _, separated by commas",
    fallback: "LANG,LC_*,TZ,COLORTERM",
    schema: z
      .string()
      .transform((text) => text.split(",").map((name) => name.trim()))
      .pipe(z.array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/))),
  }),
  sshForwarding: setting({
    variable: "GATEHOUSE_SSH_FORWARDING",
    flag: "--ssh-forwarding",
    value: "off|namespace|on",
    about:
      "Which connections logins may forward through devices (`ssh -L`, `-D`, `-J`): none; those that the setting " +
      "`ssh_forwarding` of the namespace allows; all, although no firewall rule applies to their targets",
    allowed: "off, namespace or on",
    fallback: "namespace",
    schema: z.enum(["off", "namespace", "on"]),
  }),
  sshKeepAlive: setting({
    variable: "GATEHOUSE_SSH_KEEP_ALIVE",
    flag: "--ssh-keep-alive",
    value: "seconds",
    about:
      "Seconds after which the gateway asks a silent SSH client for an answer; after three requests without one, it " +
      "ends the connection, its commands and its session",
    allowed: "a whole number of seconds from 1 to 3600",
    fallback: "30",
    schema: wholeNumber.refine((seconds) => seconds >= 1 && seconds <= 3600),
  }),
  sshStartupsPerAddress: setting({
    variable: "GATEHOUSE_SSH_STARTUPS_PER_ADDRESS",
    flag: "--ssh-startups-per-address",
    value: "number",
    about:
      "Most SSH connections of one address (of IPv6 one /64) at a time that are not logged in yet; the oldest of them " +
      "makes room for a new one; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "100",
    schema: countOrNone,
  }),
  sshRefusalsPerAddress: setting({
    variable: "GATEHOUSE_SSH_REFUSALS_PER_ADDRESS",
    flag: "--ssh-refusals-per-address",
    value: "number",
    about:
      "Most refused SSH logins of one address (of IPv6 one /64) in a minute, counted by each instance for itself; " +
      "then its connections are closed until the minute is over; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "60",
    schema: countOrNone,
  }),
  endRefusedSessions: setting({
    variable: "GATEHOUSE_END_REFUSED_SESSIONS",
    flag: "--end-refused-sessions",
    value: "on|off",
    about:
      "Whether open SSH sessions and web terminals end once the policy would refuse their logins: a key is deleted, a " +
      "rule denies them, a tag, a device or a membership changes",
    allowed: "on or off",
    fallback: "on",
    schema: z.enum(["on", "off"]).transform((text) => text === "on"),
  }),
  sshMemory: setting({
    variable: "GATEHOUSE_SSH_MEMORY",
    flag: "--ssh-memory",
    value: "megabytes",
    about: "Heap limit of the gateway process, which speaks SSH; a process that reaches it is restarted",
    allowed: "a whole number, 64 or more",
    fallback: "512",
    schema: z.coerce.number().int().min(64),
  }),
};
