import { email } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { named, oneOf, onOff, optional, row, whole } from "./setting.ts";
import {
  address,
  addressRanges,
  domain,
  hostAndPort,
  imageReference,
  isPostgresql,
  listenAddress,
  origin,
  origins,
  path,
  smtpUrl,
} from "./values.ts";

/** All settings of the service, in the order of the help. */
export const settings = named({
  dataDir: row({
    value: "folder",
    about: "Folder of the database, the instance secret and the administration socket",
    allowed: "the path of a folder",
    fallback: "gatehouse-data",
    schema: path,
  }),

  // Listeners
  host: row({
    value: "address",
    about: "Address to listen on",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  port: row({
    value: "number",
    about: "Port to listen on; 0: any free one, which the log line `listening` names",
    fallback: "8080",
    ...whole({ min: 0, max: 65_535 }),
  }),
  internalHost: row({
    value: "address",
    about: "Address to listen on for internal operations, of a network that only trusted services reach",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  internalPort: row({
    value: "number",
    about:
      "Port to listen on for internal operations; left out: they are not served; 0: any free one, which the log " +
      "line `listening for internal operations` names",
    ...optional(whole({ min: 0, max: 65_535 })),
  }),
  internalToken: row({
    flag: undefined,
    value: "text",
    about: "What each request for an internal operation must carry in the header X-Internal-Token",
    allowed: "a text of 32 to 1024 visible ASCII characters, as `openssl rand -base64 32` makes one",
    secret: true,
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{32,1024}$/)
      .optional(),
  }),
  peerUrl: row({
    value: "url",
    about:
      "Address at which other instances reach this one's internal operations, so that a login finds a device whose " +
      "tunnel another instance holds; left out: it finds those of its own instance alone",
    allowed: "http:// or https:// with a host and, if it is another one, a port; needs --internal-port",
    schema: origin.optional(),
  }),
  tlsCertFile: row({
    value: "file",
    about: "Certificate with its chain, to serve HTTPS; SIGHUP reads it and the key again",
    allowed: "the path of a PEM file, given together with the key",
    schema: path.optional(),
  }),
  tlsKeyFile: row({
    value: "file",
    about: "Private key of the certificate",
    allowed: "the path of a PEM file that not everybody may read, given together with the certificate",
    schema: path.optional(),
  }),
  publicUrl: row({
    value: "url",
    about: "Address at which clients reach the service, for links; left out: the address that they called",
    allowed: "http:// or https:// with a host and, if it is another one, a port",
    schema: origin.optional(),
  }),

  // The SSH entry
  sshHost: row({
    value: "address",
    about: "Address to listen on for SSH",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  sshPort: row({
    value: "number",
    about:
      "Port to listen on for SSH to devices, `ssh login@namespace.device@host`; left out: there is no SSH entry; 0: " +
      "any free one, which the log line `listening for SSH` names",
    ...optional(whole({ min: 0, max: 65_535 })),
  }),
  sshHostKeyFile: row({
    value: "file",
    about:
      "Private key by which clients recognize the SSH entry, the same on all instances; left out: ssh_host_ed25519_key " +
      "in the data folder, made at the first start",
    allowed:
      "the path of a private key without a passphrase, Ed25519, ECDSA or RSA, that not everybody may read",
    schema: path.optional(),
  }),
  sshEnvironment: row({
    value: "names",
    about: "Environment variables that clients may set at devices, with * at the end of a name for any rest",
    allowed: "names of letters, digits and _, separated by commas",
    fallback: "LANG,LC_*,TZ,COLORTERM",
    schema: z
      .string()
      .transform((text) => text.split(",").map((name) => name.trim()))
      .pipe(z.array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/))),
  }),
  sshForwarding: row({
    value: "off|namespace|on",
    about:
      "Which connections logins may forward through devices (`ssh -L`, `-D`, `-J`): none; those that the setting " +
      "`ssh_forwarding` of the namespace allows; all, although no firewall rule applies to their targets",
    fallback: "namespace",
    ...oneOf("off", "namespace", "on"),
  }),
  sshKeepAlive: row({
    value: "seconds",
    about:
      "Seconds after which the gateway asks a silent SSH client for an answer; after three requests without one, it " +
      "ends the connection, its commands and its session",
    fallback: "30",
    ...whole({ min: 1, max: 3600, unit: "seconds" }),
  }),
  sshStartupsPerAddress: row({
    value: "number",
    about:
      "Most SSH connections of one address (of IPv6 one /64) at a time that are not logged in yet; the oldest of them " +
      "makes room for a new one; 0: no limit",
    fallback: "100",
    ...whole({ min: 0 }),
  }),
  sshRefusalsPerAddress: row({
    value: "number",
    about:
      "Most refused SSH logins of one address (of IPv6 one /64) in a minute, counted by each instance for itself; " +
      "then its connections are closed until the minute is over; 0: no limit",
    fallback: "60",
    ...whole({ min: 0 }),
  }),
  endRefusedSessions: row({
    value: "on|off",
    about:
      "Whether open SSH sessions and web terminals end once the policy would refuse their logins: a key is deleted, a " +
      "rule denies them, a tag, a device or a membership changes",
    fallback: "on",
    ...onOff,
  }),
  sshMemory: row({
    value: "megabytes",
    about: "Heap limit of the gateway process, which speaks SSH; a process that reaches it is restarted",
    fallback: "512",
    ...whole({ min: 64 }),
  }),

  // The database
  databaseUrl: row({
    value: "url",
    about:
      "Database, when it is not the file gatehouse.db in the data folder: file:<path> of a SQLite file, or " +
      "postgresql://user@host/name, which several instances may share",
    allowed: "file:<path> of a SQLite file, or postgresql://[user[:password]@]host[:port]/name",
    secret: true,
    refusedAsFlag: (text) => {
      return URL.canParse(text) && new URL(text).password !== ""
        ? "a password on the command line can be read by every user of the machine"
        : undefined;
    },
    schema: z
      .string()
      .refine((text) => /^file:[^?]+$/.test(text) || isPostgresql(text))
      .optional(),
  }),
  databaseConnections: row({
    value: "number",
    about: "Most connections to a PostgreSQL database that this process opens",
    fallback: "10",
    ...whole({ min: 2, max: 1000 }),
  }),
  secret: row({
    flag: undefined,
    value: "text",
    about:
      "Secret that seals the signing keys and the MFA secrets in the database: the same for all instances on one " +
      "database. Left out: the file `secret` in the data folder, made at the first start. Back it up with the database",
    allowed: "a text of 32 characters at least, as `openssl rand -base64 32` makes one",
    secret: true,
    schema: z.string().min(32).max(1024).optional(),
  }),

  edition: row({
    value: "name",
    about: "Which operations are served: community, enterprise or cloud",
    fallback: "enterprise",
    ...oneOf("community", "enterprise", "cloud"),
  }),

  // Mail
  smtpUrl: row({
    flag: undefined,
    value: "url",
    about:
      "Mail server. Left out: mails are written into files in the folder `mail` of the data folder, for the operator " +
      "to hand on",
    allowed:
      "smtp://[user:password@]host[:port], which uses STARTTLS, or smtps://[user:password@]host[:port], special " +
      "characters of user and password in percent encoding",
    secret: true,
    schema: smtpUrl.optional(),
  }),
  smtpTls: row({
    value: "when",
    about:
      "Whether mails may go to the mail server without TLS: required (never), or offered (when it offers none); to a " +
      "server on this machine they always may",
    fallback: "required",
    ...oneOf("required", "offered"),
  }),
  mailFrom: row({
    value: "address",
    about: "Address that mails come from; needed with a mail server",
    allowed: "an e-mail address",
    schema: email.optional(),
  }),

  maximumLockout: row({
    value: "minutes",
    about: "Longest lockout after wrong logins, in minutes; 0 or less: no lockouts",
    fallback: "60",
    ...whole({ unit: "minutes" }),
  }),

  // Devices
  maximumPendingDevices: row({
    value: "number",
    about:
      "How many devices of a namespace may wait to be accepted: anybody who knows its id can enroll one; " +
      "0 or less: no limit",
    fallback: "10000",
    ...whole({ unit: "devices" }),
  }),
  maximumFirewallRules: row({
    value: "number",
    about:
      "How many firewall rules a namespace may have: each login to its devices reads them; 0 or less: no limit",
    fallback: "10000",
    ...whole({ unit: "rules" }),
  }),
  maximumConnectors: row({
    value: "number",
    about: "How many connectors a namespace may have; 0 or less: no limit",
    fallback: "100",
    ...whole({ unit: "connectors" }),
  }),
  maximumTunnels: row({
    value: "number",
    about: "How many tunnels a device may have at a time; 0 or less: no limit",
    fallback: "10",
    ...whole({ unit: "tunnels" }),
  }),
  tunnelsDomain: row({
    value: "domain",
    about: "Domain below which tunnels have their addresses; left out: the host that clients called",
    allowed: "a host name of labels of letters, digits and inner hyphens, with at most 220 characters",
    schema: domain.optional(),
  }),
  agentImage: row({
    value: "image",
    about: "Container image of the agent that the install script runs, with its tag or digest",
    allowed: "a reference of a container image, like registry.example.org/agent:v0.19.0",
    fallback: "docker.io/shellhubio/agent:v0.19.0",
    schema: imageReference,
  }),

  // Rate limits
  loginsPerAddress: row({
    value: "number",
    about:
      "Most login-type requests of one address (of IPv6 one /64) in a minute, over all instances; 0: no limit",
    fallback: "60",
    ...whole({ min: 0 }),
  }),
  loginsPerAccount: row({
    value: "number",
    about:
      "Most login-type requests for one user name in a minute, from all addresses but those of the last 30 days' " +
      "logins, each of which has that limit for itself; 0: no limit",
    fallback: "30",
    ...whole({ min: 0 }),
  }),
  reportsPerAddress: row({
    value: "number",
    about:
      "Most reports of devices from one address in a minute, counted by each instance for itself. An agent reports " +
      "when it starts, and every 10 to 11 minutes while it has a tunnel, so it is the fleet behind one address that " +
      "starts at once which needs the room; 0: no limit",
    fallback: "60000",
    ...whole({ min: 0 }),
  }),
  enrollmentsPerAddress: row({
    value: "number",
    about:
      "Most devices of one address in a minute that the service does not know yet, counted by each instance for " +
      "itself: as many can be brought into use behind one address at a time; 0: no limit",
    fallback: "2000",
    ...whole({ min: 0 }),
  }),
  listBacklog: row({
    value: "milliseconds",
    about:
      "How long the waiting lists of one namespace may hold up an instance in all, in milliseconds, by what its lists " +
      "took lately. A further list of it is answered with 503 and Retry-After; no other request is. Lists wait only on " +
      "SQLite, where all requests wait while one is made; 0: no limit",
    fallback: "500",
    ...whole({ min: 0 }),
  }),

  // Clients
  sshEndpoint: row({
    value: "host:port",
    about:
      "Where clients reach the SSH side; left out: the host that they called, and the port of --ssh-port",
    allowed: "host:port, the port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  apiEndpoint: row({
    value: "host:port",
    about: "Where clients reach the API; left out: the host that they called",
    allowed: "host:port, the port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  trustedProxies: row({
    value: "addresses",
    about:
      "Proxies whose X-Real-IP, else X-Forwarded-For, and X-Forwarded-Host, -Port and -Proto are believed; they " +
      "must set or remove these headers of their clients. On the SSH port they may send the PROXY protocol",
    allowed: "IP addresses and ranges like 10.0.0.0/8, separated by commas",
    schema: addressRanges.default([]),
  }),
  corsOrigins: row({
    value: "origins",
    about: "Origins whose pages may call the service from a browser, separated by commas; left out: none",
    allowed: "origins like https://console.example.org, separated by commas",
    schema: origins.default([]),
  }),
  pages: row({
    value: "on|off",
    about:
      "Whether the pages are served that the service's own links lead to: / and /setup, and those in its mails; off " +
      "where a console serves these paths",
    fallback: "on",
    ...onOff,
  }),

  // SAML
  samlIdpEntityId: row({
    value: "id",
    about:
      "Entity id of the identity provider whose users log in by SAML, given together with its address, its " +
      "certificate and the public URL; left out: SAML is off",
    allowed: "a text of at most 1024 characters, on the edition enterprise or cloud",
    schema: z.string().min(1).max(1024).optional(),
  }),
  samlSsoUrl: row({
    value: "url",
    about: "Address of the identity provider to which browsers bring requests (binding HTTP-Redirect)",
    allowed: "a URL that begins with https:// or http://",
    schema: z.url({ protocol: /^https?$/ }).optional(),
  }),
  samlCertificateFile: row({
    value: "file",
    about:
      "Certificates with which the identity provider signs: several while it changes them. Only their keys count, not " +
      "their dates",
    allowed: "the path of a PEM file of certificates with RSA keys of 2048 bits or more",
    schema: path.optional(),
  }),
  samlEmailAttribute: row({
    value: "name",
    about: "Attribute with a user's e-mail address; without it in a response, the NameID must be one",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "email",
    schema: z.string().min(1).max(1024),
  }),
  samlNameAttribute: row({
    value: "name",
    about: "Attribute with a user's name; without it in a response, the e-mail address is the name",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "name",
    schema: z.string().min(1).max(1024),
  }),
  samlLinkUsers: row({
    value: "true|false",
    about:
      "Whether the identity provider may log in as a user of this service who has the same e-mail address; only for " +
      "one in which nobody can choose his address",
    allowed: "true or false",
    fallback: "false",
    schema: z.enum(["true", "false"]).transform((text) => text === "true"),
  }),

  // Billing
  billingGateway: row({
    value: "name",
    about: "Which payment gateway a cloud instance uses; ledger: the one in the service's own database",
    fallback: "ledger",
    ...oneOf("ledger"),
  }),
  billingTimeout: row({
    value: "seconds",
    about: "How long the payment gateway may take to answer, in seconds",
    fallback: "10",
    ...whole({ min: 1, max: 60, unit: "seconds" }),
  }),
  billingDevicePrice: row({
    value: "number",
    about:
      "What a subscription costs a month for each accepted device, in hundredths of the currency; invoices of " +
      "nothing count as paid",
    fallback: "0",
    ...whole({ min: 0, max: 1_000_000 }),
  }),
  billingCurrency: row({
    value: "name",
    about: "Currency of new invoices",
    fallback: "usd",
    ...oneOf("usd", "brl"),
  }),

  geoipFile: row({
    value: "file",
    about:
      "Database of the positions of IP addresses, such as GeoLite2 City; SIGHUP reads it again; left out: the " +
      "positions of devices and sessions are 0,0",
    allowed: "the path of a file in the MaxMind format (.mmdb)",
    schema: path.optional(),
  }),

  // Retention
  auditRetention: row({
    value: "days",
    about: "How long entries of the audit trail are kept, in days; 0: for ever",
    fallback: "365",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  sessionRetention: row({
    value: "days",
    about: "How long sessions are kept after their end, in days; 0: for ever",
    fallback: "365",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  recordingRetention: row({
    value: "days",
    about:
      "How long recordings are kept after the end of their session, in days, but no longer than the session; " +
      "0: as long as the session",
    fallback: "90",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  maximumRecording: row({
    value: "MiB",
    about: "Most that is kept of the recording of one session, in MiB; what comes after that is refused",
    fallback: "64",
    ...whole({ min: 1, max: 1024 }),
  }),

  // Operation
  metricsAddress: row({
    value: "host:port",
    about: "Address to serve /metrics for Prometheus on, apart from everything else; left out: not served",
    allowed: "host:port, the port from 0 (any free one) to 65535",
    schema: listenAddress.optional(),
  }),
  metricsTokenFile: row({
    value: "file",
    about: "File with the bearer token that Prometheus must send; left out: none is asked for",
    allowed: "the path of a file that not everybody may read, with 16 characters or more",
    schema: path.optional(),
  }),
  logLevel: row({
    value: "level",
    about: "Least important messages to log: fatal, error, warn, info, debug, trace or silent",
    fallback: "info",
    ...oneOf("fatal", "error", "warn", "info", "debug", "trace", "silent"),
  }),
  drain: row({
    value: "seconds",
    about:
      "How long open SSH sessions and web terminals may go on when the service is stopped, in seconds; no new ones " +
      "begin meanwhile, and a second signal ends them at once",
    fallback: "0",
    ...whole({ min: 0, max: 86_400, unit: "seconds" }),
  }),
  shutdownTimeout: row({
    value: "seconds",
    about: "How long requests in flight may take to end when the service is stopped, in seconds",
    fallback: "10",
    ...whole({ min: 1, max: 3600, unit: "seconds" }),
  }),
});

export type SettingName = keyof typeof settings;
/** The values of all settings, in the units of their texts. */
export type SettingValues = { readonly [K in SettingName]: z.output<(typeof settings)[K]["schema"]> };
