import { email } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { named, oneOf, onOff, optional, row, whole } from "./setting.ts";
import {
  address,
  addressRanges,
  domain,
  hostAndPort,
  httpProxy,
  imageReference,
  isPostgresql,
  listenAddress,
  origin,
  origins,
  path,
  smtpUrl,
} from "./values.ts";

/**
 * Returns the reason why a URL is rejected as a flag: it contains a password. Returns undefined for a URL without a
 * password.
 */
const passwordInUrl = (text: string) =>
  URL.canParse(text) && new URL(text).password !== ""
    ? "every user of the machine can read a password on the command line"
    : undefined;

/** All settings of the service, in the order in which the help lists them. */
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
    about:
      "Port to listen on. 0 selects a free port, and the log line `listening` contains the selected port",
    fallback: "8080",
    ...whole({ min: 0, max: 65_535 }),
  }),
  internalHost: row({
    value: "address",
    about: "Address to listen on for internal operations, in a network that only trusted services can reach",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  internalPort: row({
    value: "number",
    about:
      "Port to listen on for internal operations. By default, the service does not serve internal operations. " +
      "0 selects a free port, and the log line `listening for internal operations` contains the selected port",
    ...optional(whole({ min: 0, max: 65_535 })),
  }),
  internalToken: row({
    flag: undefined,
    value: "text",
    about: "Token that each request for an internal operation must send in the header X-Internal-Token",
    allowed:
      "a text of 32 to 1024 visible ASCII characters, for example the output of `openssl rand -base64 32`",
    secret: true,
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{32,1024}$/)
      .optional(),
  }),
  peerUrl: row({
    value: "url",
    about:
      "Address at which other instances reach the internal operations of this instance. If this address is " +
      "set, a login finds devices whose tunnels are open on another instance. By default, a login finds only " +
      "devices whose tunnels are open on the same instance",
    allowed: "http:// or https:// with a host and an optional port; requires --internal-port",
    schema: origin.optional(),
  }),
  tlsCertFile: row({
    value: "file",
    about: "TLS certificate with its chain, to serve HTTPS. SIGHUP reloads the certificate and the key",
    allowed: "the path of a PEM file, set together with the key",
    schema: path.optional(),
  }),
  tlsKeyFile: row({
    value: "file",
    about: "Private key of the TLS certificate",
    allowed: "the path of a PEM file that is not readable by all users, set together with the certificate",
    schema: path.optional(),
  }),
  publicUrl: row({
    value: "url",
    about:
      "Address at which clients reach the service. Links contain this address. Default: the address of the request",
    allowed: "http:// or https:// with a host and an optional port",
    schema: origin.optional(),
  }),

  // SSH access
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
      "Port to listen on for SSH to devices, `ssh login@namespace.device@host`. By default, the " +
      "service does not serve SSH. 0 selects a free port, and the log line `listening for SSH` contains the " +
      "selected port",
    ...optional(whole({ min: 0, max: 65_535 })),
  }),
  sshHostKeyFile: row({
    value: "file",
    about:
      "SSH host key by which clients recognize the service. Use the same key on all instances. Default: " +
      "ssh_host_ed25519_key in the data folder, created at the first start",
    allowed:
      "the path of a private key without a passphrase, Ed25519, ECDSA or RSA, that is not readable by all " +
      "users",
    schema: path.optional(),
  }),
  sshEnvironment: row({
    value: "names",
    about:
      "Environment variables that clients may set on devices. An * at the end of a name matches any suffix",
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
      "Connections that logins may forward through devices (`ssh -L`, `-D`, `-J`): off = none; namespace = " +
      "the connections that the namespace's setting `ssh_forwarding` allows; on = all. Firewall rules do not " +
      "apply to the targets of these connections",
    fallback: "namespace",
    ...oneOf("off", "namespace", "on"),
  }),
  sshKeepAlive: row({
    value: "seconds",
    about:
      "Seconds without data from an SSH client after which the gateway sends a keep-alive request. After three " +
      "requests without a response, the gateway ends the connection, its commands and its session",
    fallback: "30",
    ...whole({ min: 1, max: 3600, unit: "seconds" }),
  }),
  sshStartupsPerAddress: row({
    value: "number",
    about:
      "Maximum number of concurrent SSH connections from one address (IPv6: one /64) before login. Above " +
      "the maximum, a new connection replaces the oldest connection. 0 = no limit",
    fallback: "100",
    ...whole({ min: 0 }),
  }),
  sshRefusalsPerAddress: row({
    value: "number",
    about:
      "Maximum number of refused SSH logins from one address (IPv6: one /64) per minute and instance. Above " +
      "the maximum, the service closes connections from the address until the minute ends. 0 = no limit",
    fallback: "60",
    ...whole({ min: 0 }),
  }),
  endRefusedSessions: row({
    value: "on|off",
    about:
      "End open SSH sessions and web terminals whose logins the policy no longer allows. This happens, for " +
      "example, after a key is deleted, a rule is created, or a tag, a device or a membership is changed",
    fallback: "on",
    ...onOff,
  }),
  sshRecordPatience: row({
    value: "seconds",
    about:
      "Time for which the output of an SSH session waits while the database stores none of it. Afterwards the " +
      "session continues with a gap in its recording, or ends: the namespace's setting session_record_failure",
    fallback: "60",
    ...whole({ min: 1, max: 3600, unit: "seconds" }),
  }),
  sshMemory: row({
    value: "megabytes",
    about:
      "Heap limit of the gateway process, which serves SSH. The service restarts a process that reaches the " +
      "limit",
    fallback: "512",
    ...whole({ min: 64 }),
  }),

  // The database
  databaseUrl: row({
    value: "url",
    about:
      "Database: file:<path> of a SQLite file, or postgresql://user@host/name. Several instances can share a " +
      "PostgreSQL database. Default: the file gatehouse.db in the data folder",
    allowed: "file:<path> of a SQLite file, or postgresql://[user[:password]@]host[:port]/name",
    secret: true,
    refusedAsFlag: passwordInUrl,
    schema: z
      .string()
      .refine((text) => /^file:[^?]+$/.test(text) || isPostgresql(text))
      .optional(),
  }),
  databaseConnections: row({
    value: "number",
    about: "Maximum number of connections that this process opens to a PostgreSQL database",
    fallback: "10",
    ...whole({ min: 2, max: 1000 }),
  }),
  migrateAnyway: row({
    value: "on|off",
    about:
      "Migrate a PostgreSQL database although instances of an older version run that must not run beside the new " +
      "schema. By default, the service waits 65 seconds for these instances to end, and then does not start",
    fallback: "off",
    ...onOff,
  }),
  secret: row({
    flag: undefined,
    value: "text",
    about:
      "Secret that encrypts the signing keys and the MFA secrets in the database. All instances on one " +
      "database need the same secret. Default: the file `secret` in the data folder, created at the first " +
      "start. Back up the secret with the database",
    allowed: "a text of at least 32 characters, for example the output of `openssl rand -base64 32`",
    secret: true,
    schema: z.string().min(32).max(1024).optional(),
  }),

  edition: row({
    value: "name",
    about:
      "The ShellHub edition whose operations the service has: community, enterprise or cloud. All editions are free",
    fallback: "enterprise",
    ...oneOf("community", "enterprise", "cloud"),
  }),

  // Mail
  smtpUrl: row({
    flag: undefined,
    value: "url",
    about:
      "URL of the mail server. By default, the service writes mails to files in the folder `mail` of the data " +
      "folder, and the operator must forward these mails",
    allowed:
      "smtp://[user:password@]host[:port], which uses STARTTLS, or smtps://[user:password@]host[:port]; " +
      "percent-encode special characters of user and password",
    secret: true,
    schema: smtpUrl.optional(),
  }),
  smtpTls: row({
    value: "when",
    about:
      "TLS to the mail server: required = always; offered = only if the server offers it. The service " +
      "never requires TLS for a mail server on the same machine",
    fallback: "required",
    ...oneOf("required", "offered"),
  }),
  mailFrom: row({
    value: "address",
    about: "Sender address of mails. Required if a mail server is set",
    allowed: "an e-mail address",
    schema: email.optional(),
  }),

  maximumLockout: row({
    value: "minutes",
    about: "Maximum lockout after failed logins, in minutes. 0 or less = no lockouts",
    fallback: "60",
    ...whole({ unit: "minutes" }),
  }),

  // Devices
  maximumPendingDevices: row({
    value: "number",
    about:
      "Maximum number of pending devices in a namespace. Any client that has the tenant id of the namespace can " +
      "enroll a device. 0 or less = no limit",
    fallback: "10000",
    ...whole({ unit: "devices" }),
  }),
  maximumFirewallRules: row({
    value: "number",
    about:
      "Maximum number of firewall rules in a namespace. The service reads these rules for each login to a device " +
      "of the namespace. 0 or less = no limit",
    fallback: "10000",
    ...whole({ unit: "rules" }),
  }),
  maximumConnectors: row({
    value: "number",
    about: "Maximum number of connectors in a namespace. 0 or less = no limit",
    fallback: "100",
    ...whole({ unit: "connectors" }),
  }),
  maximumTunnels: row({
    value: "number",
    about: "Maximum number of tunnels that a device can have at the same time. 0 or less = no limit",
    fallback: "10",
    ...whole({ unit: "tunnels" }),
  }),
  tunnelsDomain: row({
    value: "domain",
    about: "Parent domain of the addresses of tunnels. Default: the host of the request",
    allowed: "a host name of labels of letters, digits and inner hyphens, with at most 220 characters",
    schema: domain.optional(),
  }),
  agentImage: row({
    value: "image",
    about: "Container image of the agent, with a tag or digest. The install script runs this image",
    allowed: "a reference to a container image, such as registry.example.org/agent:v0.19.0",
    fallback: "docker.io/shellhubio/agent:v0.19.0",
    schema: imageReference,
  }),

  // Rate limits
  loginsPerAddress: row({
    value: "number",
    about:
      "Maximum number of login-type requests from one address (IPv6: one /64) per minute, over all " +
      "instances. 0 = no limit",
    fallback: "60",
    ...whole({ min: 0 }),
  }),
  loginsPerAccount: row({
    value: "number",
    about:
      "Maximum number of login-type requests for one user name per minute. Each address from which the user " +
      "logged in during the last 30 days has a separate limit. All other addresses share one limit. 0 = no " +
      "limit",
    fallback: "30",
    ...whole({ min: 0 }),
  }),
  reportsPerAddress: row({
    value: "number",
    about:
      "Maximum number of device reports from one address per minute and instance. An agent reports when it " +
      "starts, and every 10 to 11 minutes while it has a tunnel. The limit must be high enough for a fleet " +
      "behind one address that starts at the same time. 0 = no limit",
    fallback: "60000",
    ...whole({ min: 0 }),
  }),
  enrollmentsPerAddress: row({
    value: "number",
    about:
      "Maximum number of new devices from one address per minute and instance. The limit determines how " +
      "fast a fleet behind one address can enroll. 0 = no limit",
    fallback: "2000",
    ...whole({ min: 0 }),
  }),
  listBacklog: row({
    value: "milliseconds",
    about:
      "Maximum total duration of the queued list requests of one namespace, in milliseconds. The service " +
      "estimates the duration from recent list requests of the namespace. Above the maximum, the service " +
      "rejects further list requests of the namespace with 503 and Retry-After. Lists are queued only on " +
      "SQLite, where all requests wait while a list is read. 0 = no limit",
    fallback: "500",
    ...whole({ min: 0 }),
  }),

  // Clients
  sshEndpoint: row({
    value: "host:port",
    about: "Address at which clients reach SSH. Default: the host of the request, and the port of --ssh-port",
    allowed: "host:port, with a port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  apiEndpoint: row({
    value: "host:port",
    about: "Address at which clients reach the API. Default: the host of the request",
    allowed: "host:port, with a port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  trustedProxies: row({
    value: "addresses",
    about:
      "Trusted proxies. The service uses the headers X-Real-IP (or else X-Forwarded-For) and " +
      "X-Forwarded-Host, -Port and -Proto in requests from these proxies. A proxy must set or remove these " +
      "headers in the requests of its clients. On the SSH port, a proxy may use the PROXY protocol",
    allowed: "IP addresses and ranges such as 10.0.0.0/8, separated by commas",
    schema: addressRanges.default([]),
  }),
  workloadIssuerNetworks: row({
    value: "addresses",
    about:
      "Networks with private addresses in which OpenID Connect providers of trusted workloads may be, for example a " +
      "GitLab server. By default, the service connects only to providers with public addresses, because the " +
      "administrators of namespaces choose the providers",
    allowed: "IP addresses and ranges such as 10.0.0.0/8, separated by commas",
    schema: addressRanges.default([]),
  }),
  workloadIssuerProxy: row({
    value: "url",
    about:
      "HTTP proxy for requests to OpenID Connect providers of trusted workloads. The proxy resolves the names of the " +
      "providers, so the service cannot check that their addresses are public: let the proxy refuse private addresses. " +
      "By default, the service uses no proxy, and ignores HTTPS_PROXY",
    allowed: "http://[user:password@]host:port, or the same with https://",
    secret: true,
    refusedAsFlag: passwordInUrl,
    schema: httpProxy.optional(),
  }),
  corsOrigins: row({
    value: "origins",
    about: "Origins whose pages may call the service from a browser, separated by commas. Default: none",
    allowed: "origins such as https://console.example.org, separated by commas",
    schema: origins.default([]),
  }),
  pages: row({
    value: "on|off",
    about:
      "Serve the pages that the service's own links open: /, /setup, /login, /mfa-login, and the pages linked in its " +
      "mails. Browsers also receive a page for an unknown address. Set this to off if a console serves these paths",
    fallback: "on",
    ...onOff,
  }),

  consoleUrl: row({
    value: "url",
    about:
      "Address of a web console. The start page links to it, and /login and /mfa-login redirect to the pages of the " +
      "same name of the console. Requires the pages. By default, the service has no console",
    allowed: "http:// or https:// with a host and an optional port, other than the public URL",
    schema: origin.optional(),
  }),

  // SAML
  samlIdpEntityId: row({
    value: "id",
    about:
      "Entity id of the identity provider whose users log in by SAML. SAML also requires the address and the " +
      "certificates of the provider, and the public URL. By default, SAML is off",
    allowed: "a text of at most 1024 characters (only in the enterprise and cloud editions)",
    schema: z.string().min(1).max(1024).optional(),
  }),
  samlSsoUrl: row({
    value: "url",
    about: "Address of the identity provider that receives requests from browsers (binding HTTP-Redirect)",
    allowed: "a URL that begins with https:// or http://",
    schema: z.url({ protocol: /^https?$/ }).optional(),
  }),
  samlCertificateFile: row({
    value: "file",
    about:
      "Signing certificates of the identity provider. During a certificate change, include the old " +
      "and the new certificate. The service ignores the validity dates of the certificates",
    allowed: "the path of a PEM file of certificates with RSA keys of 2048 bits or more",
    schema: path.optional(),
  }),
  samlEmailAttribute: row({
    value: "name",
    about:
      "SAML attribute with a user's e-mail address. If a response does not contain this attribute, the NameID " +
      "must be an e-mail address",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "email",
    schema: z.string().min(1).max(1024),
  }),
  samlNameAttribute: row({
    value: "name",
    about:
      "SAML attribute with a user's name. If a response does not contain this attribute, the e-mail address " +
      "is used as the name",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "name",
    schema: z.string().min(1).max(1024),
  }),
  samlLinkUsers: row({
    value: "true|false",
    about:
      "Let a user of the identity provider log in as the existing user with the same e-mail address. Set this " +
      "to true only if users cannot choose their e-mail addresses at the provider",
    allowed: "true or false",
    fallback: "false",
    schema: z.enum(["true", "false"]).transform((text) => text === "true"),
  }),

  // Billing
  billingGateway: row({
    value: "name",
    about:
      "Payment gateway of a cloud instance. The gateway `ledger` stores its data in the service's own database",
    fallback: "ledger",
    ...oneOf("ledger"),
  }),
  billingTimeout: row({
    value: "seconds",
    about: "Timeout for responses of the payment gateway, in seconds",
    fallback: "10",
    ...whole({ min: 1, max: 60, unit: "seconds" }),
  }),
  billingDevicePrice: row({
    value: "number",
    about:
      "Monthly price of a subscription for each accepted device, in minor units of the currency (for example " +
      "cents). An invoice of 0 is treated as paid",
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
      "Database with the positions of IP addresses, such as GeoLite2 City. SIGHUP reloads the database. " +
      "Without a database, the positions of devices and sessions are 0,0",
    allowed: "the path of a file in the MaxMind format (.mmdb)",
    schema: path.optional(),
  }),

  // Retention
  auditRetention: row({
    value: "days",
    about: "Retention of audit trail entries, in days. 0 = forever",
    fallback: "365",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  sessionRetention: row({
    value: "days",
    about: "Retention of sessions after their end, in days. 0 = forever",
    fallback: "365",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  expiredObjectRetention: row({
    value: "days",
    about:
      "Retention of expired public keys, firewall rules and memberships that no program declares, in days after their " +
      "end. 0 = forever",
    fallback: "30",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  recordingRetention: row({
    value: "days",
    about:
      "Retention of recordings after the end of the session, in days. A recording is never kept longer than " +
      "its session. 0 = as long as the session",
    fallback: "90",
    ...whole({ min: 0, max: 36_500, unit: "days" }),
  }),
  maximumRecording: row({
    value: "MiB",
    about: "Maximum size of the recording of one session, in MiB. Output above the maximum is not recorded",
    fallback: "64",
    ...whole({ min: 1, max: 1024 }),
  }),

  recordingsMax: row({
    value: "MiB",
    about:
      "Quota of all recordings, in MiB. If they reach the quota, the namespaces with the largest recordings get equal " +
      "shares of it. 0 = no limit",
    fallback: "0",
    ...whole({ min: 0 }),
  }),
  namespaceRecordingsMax: row({
    value: "MiB",
    about: "Quota of the recordings of each namespace, in MiB. 0 = no limit",
    fallback: "0",
    ...whole({ min: 0 }),
  }),
  recordingsFull: row({
    value: "delete-oldest|refuse",
    about:
      "Policy at a quota of recordings: delete-oldest = delete the oldest recordings of the namespace, except those of " +
      "the last hour; refuse = refuse new sessions in the namespace while it records sessions",
    fallback: "delete-oldest",
    ...oneOf("delete-oldest", "refuse"),
  }),

  // Operation
  metricsAddress: row({
    value: "host:port",
    about:
      "Separate address that serves /metrics for Prometheus. By default, the service does not serve /metrics",
    allowed: "host:port, with a port from 0 (any free port) to 65535",
    schema: listenAddress.optional(),
  }),
  metricsTokenFile: row({
    value: "file",
    about: "File with the bearer token that Prometheus must send. By default, no token is required",
    allowed: "the path of a file that contains at least 16 characters and is not readable by all users",
    schema: path.optional(),
  }),
  logLevel: row({
    value: "level",
    about: "Minimum level of log messages: fatal, error, warn, info, debug, trace or silent",
    fallback: "info",
    ...oneOf("fatal", "error", "warn", "info", "debug", "trace", "silent"),
  }),
  lameDuck: row({
    value: "seconds",
    about:
      "Time, in seconds, for which the service continues to serve all requests and logins after it is stopped, while " +
      "/readyz returns 503. Load balancers must notice the 503 within this time. The default is for a service without " +
      "a load balancer",
    fallback: "0",
    ...whole({ min: 0, max: 3600, unit: "seconds" }),
  }),
  drain: row({
    value: "seconds",
    about:
      "Maximum time, in seconds, for which open SSH sessions and web terminals continue after the service is " +
      "stopped and the time of --lame-duck is over. New sessions are refused during this time. A second signal ends " +
      "all sessions immediately",
    fallback: "0",
    ...whole({ min: 0, max: 86_400, unit: "seconds" }),
  }),
  shutdownTimeout: row({
    value: "seconds",
    about: "Maximum time, in seconds, to complete open requests when the service is stopped",
    fallback: "10",
    ...whole({ min: 1, max: 3600, unit: "seconds" }),
  }),
});

export type SettingName = keyof typeof settings;
/** The values of all settings. The description of each setting specifies the unit of a number. */
export type SettingValues = { readonly [K in SettingName]: z.output<(typeof settings)[K]["schema"]> };
