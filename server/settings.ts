import { z } from "zod";
import { mailSettings } from "./mail/mailSettings.ts";
import { type Setting, setting } from "./setting.ts";
import {
  address,
  addressRanges,
  countOrNone,
  domain,
  hostAndPort,
  imageReference,
  isPostgresql,
  listenAddress,
  listeningPort,
  origin,
  origins,
  wholeNumber,
} from "./settingValues.ts";

export type { Setting };

/** All settings of the service, in the order of the help. */
export const settings = {
  dataDir: setting({
    variable: "GATEHOUSE_DATA_DIR",
    flag: "--data-dir",
    value: "folder",
    about: "Folder of the database, the instance secret and the administration socket",
    allowed: "the path of a folder",
    fallback: "gatehouse-data",
    schema: z.string().min(1),
  }),
  host: setting({
    variable: "GATEHOUSE_HOST",
    flag: "--host",
    value: "address",
    about: "Address to listen on",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  port: setting({
    variable: "GATEHOUSE_PORT",
    flag: "--port",
    value: "number",
    about: "Port to listen on; 0: any free one, which the log line `listening` names",
    allowed: "a whole number from 0 to 65535",
    fallback: "8080",
    schema: listeningPort,
  }),
  internalHost: setting({
    variable: "GATEHOUSE_INTERNAL_HOST",
    flag: "--internal-host",
    value: "address",
    about: "Address to listen on for internal operations, of a network that only trusted services reach",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  internalPort: setting({
    variable: "GATEHOUSE_INTERNAL_PORT",
    flag: "--internal-port",
    value: "number",
    about:
      "Port to listen on for internal operations; left out: they are not served; 0: any free one, which the log " +
      "line `listening for internal operations` names",
    allowed: "a whole number from 0 to 65535",
    schema: listeningPort.optional(),
  }),
  internalToken: setting({
    variable: "GATEHOUSE_INTERNAL_TOKEN",
    value: "text",
    about: "What each request for an internal operation must carry in the header X-Internal-Token",
    allowed: "a text of 32 to 1024 visible ASCII characters, as `openssl rand -base64 32` makes one",
    secret: true,
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{32,1024}$/)
      .optional(),
  }),
  tlsCertFile: setting({
    variable: "GATEHOUSE_TLS_CERT_FILE",
    flag: "--tls-cert-file",
    value: "file",
    about: "Certificate with its chain, to serve HTTPS; SIGHUP reads it and the key again",
    allowed: "the path of a PEM file, given together with the key",
    schema: z.string().min(1).optional(),
  }),
  tlsKeyFile: setting({
    variable: "GATEHOUSE_TLS_KEY_FILE",
    flag: "--tls-key-file",
    value: "file",
    about: "Private key of the certificate",
    allowed: "the path of a PEM file that not everybody may read, given together with the certificate",
    schema: z.string().min(1).optional(),
  }),
  publicUrl: setting({
    variable: "GATEHOUSE_PUBLIC_URL",
    flag: "--public-url",
    value: "url",
    about: "Address at which clients reach the service, for links; left out: the address that they called",
    allowed: "http:// or https:// with a host and, if it is another one, a port",
    schema: origin.optional(),
  }),
  databaseUrl: setting({
    variable: "GATEHOUSE_DATABASE_URL",
    flag: "--database-url",
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
  databaseConnections: setting({
    variable: "GATEHOUSE_DATABASE_CONNECTIONS",
    flag: "--database-connections",
    value: "number",
    about: "Most connections to a PostgreSQL database that this process opens",
    allowed: "a whole number from 2 to 1000",
    fallback: "10",
    schema: wholeNumber.refine((count) => count >= 2 && count <= 1000),
  }),
  secret: setting({
    variable: "GATEHOUSE_SECRET",
    value: "text",
    about:
      "Secret that seals the signing keys and the MFA secrets in the database: the same for all instances on one " +
      "database. Left out: the file `secret` in the data folder, made at the first start. Back it up with the database",
    allowed: "a text of 32 characters at least, as `openssl rand -base64 32` makes one",
    secret: true,
    schema: z.string().min(32).max(1024).optional(),
  }),
  edition: setting({
    variable: "GATEHOUSE_EDITION",
    flag: "--edition",
    value: "name",
    about: "Which operations are served: community, enterprise or cloud",
    allowed: "community, enterprise or cloud",
    fallback: "enterprise",
    schema: z.enum(["community", "enterprise", "cloud"]),
  }),
  ...mailSettings,
  maximumLockout: setting({
    variable: "GATEHOUSE_MAXIMUM_LOCKOUT",
    flag: "--maximum-lockout",
    value: "minutes",
    about: "Longest lockout after wrong logins, in minutes; 0 or less: no lockouts",
    allowed: "a whole number of minutes",
    fallback: "60",
    schema: wholeNumber,
  }),
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
  loginsPerAddress: setting({
    variable: "GATEHOUSE_LOGINS_PER_ADDRESS",
    flag: "--logins-per-address",
    value: "number",
    about:
      "Most login-type requests of one address (of IPv6 one /64) in a minute, over all instances; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "60",
    schema: countOrNone,
  }),
  loginsPerAccount: setting({
    variable: "GATEHOUSE_LOGINS_PER_ACCOUNT",
    flag: "--logins-per-account",
    value: "number",
    about:
      "Most login-type requests for one user name in a minute, from all addresses but those of the last 30 days' " +
      "logins, each of which has that limit for itself; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "30",
    schema: countOrNone,
  }),
  reportsPerAddress: setting({
    variable: "GATEHOUSE_REPORTS_PER_ADDRESS",
    flag: "--reports-per-address",
    value: "number",
    about:
      "Most reports of devices from one address in a minute, counted by each instance for itself; a fleet behind " +
      "one address reports twice a minute for each device; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "60000",
    schema: countOrNone,
  }),
  sshEndpoint: setting({
    variable: "GATEHOUSE_SSH_ENDPOINT",
    flag: "--ssh-endpoint",
    value: "host:port",
    about: "Where clients reach the SSH side; left out: the host that they called",
    allowed: "host:port, the port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  apiEndpoint: setting({
    variable: "GATEHOUSE_API_ENDPOINT",
    flag: "--api-endpoint",
    value: "host:port",
    about: "Where clients reach the API; left out: the host that they called",
    allowed: "host:port, the port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  trustedProxies: setting({
    variable: "GATEHOUSE_TRUSTED_PROXIES",
    flag: "--trusted-proxies",
    value: "addresses",
    about:
      "Proxies whose X-Real-IP, else X-Forwarded-For, and X-Forwarded-Host, -Port and -Proto are believed; they " +
      "must set or remove these headers of their clients",
    allowed: "IP addresses and ranges like 10.0.0.0/8, separated by commas",
    schema: addressRanges.optional(),
  }),
  corsOrigins: setting({
    variable: "GATEHOUSE_CORS_ORIGINS",
    flag: "--cors-origins",
    value: "origins",
    about: "Origins whose pages may call the service from a browser, separated by commas; left out: none",
    allowed: "origins like https://console.example.org, separated by commas",
    schema: origins.optional(),
  }),
  samlIdpEntityId: setting({
    variable: "GATEHOUSE_SAML_IDP_ENTITY_ID",
    flag: "--saml-idp-entity-id",
    value: "id",
    about:
      "Entity id of the identity provider whose users log in by SAML, given together with its address, its " +
      "certificate and the public URL; left out: SAML is off",
    allowed: "a text of at most 1024 characters, on the edition enterprise or cloud",
    schema: z.string().min(1).max(1024).optional(),
  }),
  samlSsoUrl: setting({
    variable: "GATEHOUSE_SAML_SSO_URL",
    flag: "--saml-sso-url",
    value: "url",
    about: "Address of the identity provider to which browsers bring requests (binding HTTP-Redirect)",
    allowed: "a URL that begins with https:// or http://",
    schema: z.url({ protocol: /^https?$/ }).optional(),
  }),
  samlCertificateFile: setting({
    variable: "GATEHOUSE_SAML_CERTIFICATE_FILE",
    flag: "--saml-certificate-file",
    value: "file",
    about:
      "Certificates with which the identity provider signs: several while it changes them. Only their keys count, not " +
      "their dates",
    allowed: "the path of a PEM file of certificates with RSA keys of 2048 bits or more",
    schema: z.string().min(1).optional(),
  }),
  samlEmailAttribute: setting({
    variable: "GATEHOUSE_SAML_EMAIL_ATTRIBUTE",
    flag: "--saml-email-attribute",
    value: "name",
    about: "Attribute with a user's e-mail address; without it in a response, the NameID must be one",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "email",
    schema: z.string().min(1).max(1024),
  }),
  samlNameAttribute: setting({
    variable: "GATEHOUSE_SAML_NAME_ATTRIBUTE",
    flag: "--saml-name-attribute",
    value: "name",
    about: "Attribute with a user's name; without it in a response, the e-mail address is the name",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "name",
    schema: z.string().min(1).max(1024),
  }),
  samlLinkUsers: setting({
    variable: "GATEHOUSE_SAML_LINK_USERS",
    flag: "--saml-link-users",
    value: "true|false",
    about:
      "Whether the identity provider may log in as a user of this service who has the same e-mail address; only for " +
      "one in which nobody can choose his address",
    allowed: "true or false",
    fallback: "false",
    schema: z.enum(["true", "false"]).transform((text) => text === "true"),
  }),
  billingGateway: setting({
    variable: "GATEHOUSE_BILLING_GATEWAY",
    flag: "--billing-gateway",
    value: "name",
    about: "Which payment gateway a cloud instance uses; ledger: the one in the service's own database",
    allowed: "ledger",
    fallback: "ledger",
    schema: z.enum(["ledger"]),
  }),
  billingTimeout: setting({
    variable: "GATEHOUSE_BILLING_TIMEOUT",
    flag: "--billing-timeout",
    value: "seconds",
    about: "How long the payment gateway may take to answer, in seconds",
    allowed: "a whole number of seconds from 1 to 60",
    fallback: "10",
    schema: wholeNumber.refine((seconds) => seconds >= 1 && seconds <= 60),
  }),
  billingDevicePrice: setting({
    variable: "GATEHOUSE_BILLING_DEVICE_PRICE",
    flag: "--billing-device-price",
    value: "number",
    about:
      "What a subscription costs a month for each accepted device, in hundredths of the currency; invoices of " +
      "nothing count as paid",
    allowed: "a whole number from 0 to 1000000",
    fallback: "0",
    schema: wholeNumber.refine((price) => price >= 0 && price <= 1_000_000),
  }),
  billingCurrency: setting({
    variable: "GATEHOUSE_BILLING_CURRENCY",
    flag: "--billing-currency",
    value: "name",
    about: "Currency of new invoices",
    allowed: "usd or brl",
    fallback: "usd",
    schema: z.enum(["usd", "brl"]),
  }),
  geoipFile: setting({
    variable: "GATEHOUSE_GEOIP_FILE",
    flag: "--geoip-file",
    value: "file",
    about:
      "Database of the positions of IP addresses, such as GeoLite2 City; SIGHUP reads it again; left out: the " +
      "positions of devices and sessions are 0,0",
    allowed: "the path of a file in the MaxMind format (.mmdb)",
    schema: z.string().min(1).optional(),
  }),
  auditRetention: setting({
    variable: "GATEHOUSE_AUDIT_RETENTION",
    flag: "--audit-retention",
    value: "days",
    about: "How long entries of the audit trail are kept, in days; 0: for ever",
    allowed: "a whole number of days from 0 to 36500",
    fallback: "365",
    schema: wholeNumber.refine((days) => days >= 0 && days <= 36_500),
  }),
  sessionRetention: setting({
    variable: "GATEHOUSE_SESSION_RETENTION",
    flag: "--session-retention",
    value: "days",
    about: "How long sessions are kept after their end, in days; 0: for ever",
    allowed: "a whole number of days from 0 to 36500",
    fallback: "365",
    schema: wholeNumber.refine((days) => days >= 0 && days <= 36_500),
  }),
  recordingRetention: setting({
    variable: "GATEHOUSE_RECORDING_RETENTION",
    flag: "--recording-retention",
    value: "days",
    about:
      "How long recordings are kept after the end of their session, in days, but no longer than the session; " +
      "0: as long as the session",
    allowed: "a whole number of days from 0 to 36500",
    fallback: "90",
    schema: wholeNumber.refine((days) => days >= 0 && days <= 36_500),
  }),
  maximumRecording: setting({
    variable: "GATEHOUSE_MAXIMUM_RECORDING",
    flag: "--maximum-recording",
    value: "MiB",
    about: "Most that is kept of the recording of one session, in MiB; what comes after that is refused",
    allowed: "a whole number from 1 to 1024",
    fallback: "64",
    schema: wholeNumber.refine((size) => size >= 1 && size <= 1024),
  }),
  metricsAddress: setting({
    variable: "GATEHOUSE_METRICS_ADDRESS",
    flag: "--metrics-address",
    value: "host:port",
    about: "Address to serve /metrics for Prometheus on, apart from everything else; left out: not served",
    allowed: "host:port, the port from 0 (any free one) to 65535",
    schema: listenAddress.optional(),
  }),
  metricsTokenFile: setting({
    variable: "GATEHOUSE_METRICS_TOKEN_FILE",
    flag: "--metrics-token-file",
    value: "file",
    about: "File with the bearer token that Prometheus must send; left out: none is asked for",
    allowed: "the path of a file that not everybody may read, with 16 characters or more",
    schema: z.string().min(1).optional(),
  }),
  logLevel: setting({
    variable: "GATEHOUSE_LOG_LEVEL",
    flag: "--log-level",
    value: "level",
    about: "Least important messages to log: fatal, error, warn, info, debug, trace or silent",
    allowed: "fatal, error, warn, info, debug, trace or silent",
    fallback: "info",
    schema: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
  }),
  shutdownTimeout: setting({
    variable: "GATEHOUSE_SHUTDOWN_TIMEOUT",
    flag: "--shutdown-timeout",
    value: "seconds",
    about: "How long requests in flight may take to end when the service is stopped, in seconds",
    allowed: "a whole number of seconds from 1 to 3600",
    fallback: "10",
    schema: wholeNumber.refine((seconds) => seconds >= 1 && seconds <= 3600),
  }),
};

export type SettingName = keyof typeof settings;
export type SettingValues = { [K in SettingName]: z.output<(typeof settings)[K]["schema"]> };
