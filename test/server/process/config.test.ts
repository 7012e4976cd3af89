import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../../server/settings/readConfig.ts";
import { testFolder } from "../../support/folder.ts";
import { newCertificate } from "../../support/identityProvider.ts";

/**
 * Settings that are not secret. Each row contains the setting's name, its default value, a text from the environment or
 * a flag, and the value that the service reads from this text.
 */
const SETTINGS: readonly (readonly [string, unknown, string, unknown])[] = [
  ["samlIdpEntityId", undefined, "https://idp.example.org", "https://idp.example.org"],
  ["samlSsoUrl", undefined, "https://idp.example.org/sso", "https://idp.example.org/sso"],
  ["samlEmailAttribute", "email", "mail", "mail"],
  ["samlNameAttribute", "name", "displayName", "displayName"],
  ["samlLinkUsers", false, "true", true],
  ["dataDir", resolve("gatehouse-data"), "/data", "/data"],
  ["host", "127.0.0.1", "::1", "::1"],
  ["port", 8080, "0", 0],
  ["tlsCertFile", undefined, "/tls/cert.pem", "/tls/cert.pem"],
  ["tlsKeyFile", undefined, "/tls/key.pem", "/tls/key.pem"],
  ["publicUrl", undefined, "HTTPS://Gate.Example.org:443/", "https://gate.example.org"],
  ["edition", "enterprise", "cloud", "cloud"],
  ["maximumLockout", 60, "-1", -1],
  ["maximumPendingDevices", 10_000, "5", 5],
  ["maximumFirewallRules", 10_000, "50", 50],
  ["maximumConnectors", 100, "2", 2],
  ["maximumTunnels", 10, "3", 3],
  ["tunnelsDomain", undefined, "Tunnels.example.org", "tunnels.example.org"],
  [
    "agentImage",
    "docker.io/shellhubio/agent:v0.19.0",
    "registry.example.org:5000/agent:v1",
    "registry.example.org:5000/agent:v1",
  ],
  ["geoipFile", undefined, "/geoip/city.mmdb", "/geoip/city.mmdb"],
  ["sshEndpoint", undefined, "ssh.example.com:22", "ssh.example.com:22"],
  ["sshHost", "127.0.0.1", "0.0.0.0", "0.0.0.0"],
  ["sshPort", undefined, "2222", 2222],
  ["sshHostKeyFile", undefined, "/etc/gatehouse/host_key", "/etc/gatehouse/host_key"],
  ["sshEnvironment", ["LANG", "LC_*", "TZ", "COLORTERM"], "LANG, LC_*", ["LANG", "LC_*"]],
  ["sshForwarding", "namespace", "on", "on"],
  ["sshKeepAlive", 30, "5", 5],
  ["sshStartupsPerAddress", 100, "7", 7],
  ["sshRefusalsPerAddress", 60, "0", 0],
  ["sshMemory", 512, "256", 256],
  ["sshRecordPatience", 60, "5", 5],
  ["endRefusedSessions", true, "off", false],
  ["lameDuck", 0, "10", 10],
  ["drain", 0, "90", 90],
  ["apiEndpoint", undefined, "[::1]:443", "[::1]:443"],
  ["workloadIssuerNetworks", [], "10.2.0.0/16", ["10.2.0.0/16"]],
  [
    "workloadIssuerProxy",
    undefined,
    "http://proxy.example.org:3128",
    expect.objectContaining({ address: "http://proxy.example.org:3128", authorization: undefined }),
  ],
  ["trustedProxies", [], "10.0.0.1, FD00:0::1,10.1.0.0/16", ["10.0.0.1", "fd00::1", "10.1.0.0/16"]],
  [
    "corsOrigins",
    [],
    "https://console.example.org, http://localhost:3000/",
    ["https://console.example.org", "http://localhost:3000"],
  ],
  ["pages", true, "off", false],
  ["loginsPerAddress", 60, "30", 30],
  ["loginsPerAccount", 30, "0", 0],
  ["reportsPerAddress", 60_000, "100", 100],
  ["enrollmentsPerAddress", 2000, "0", 0],
  ["listBacklog", 500, "250", 250],
  ["metricsAddress", undefined, "[::1]:9464", { host: "::1", port: 9464 }],
  ["metricsTokenFile", undefined, "/run/token", "/run/token"],
  ["logLevel", "info", "debug", "debug"],
  ["shutdownTimeout", 10, "3", 3],
  ["auditRetention", 365, "30", 30],
  ["sessionRetention", 365, "20", 20],
  ["expiredObjectRetention", 30, "0", 0],
  ["recordingRetention", 90, "0", 0],
  ["maximumRecording", 64, "1024", 1024],
  ["recordingsMax", 0, "50000", 50_000],
  ["namespaceRecordingsMax", 0, "2000", 2000],
  ["recordingsFull", "delete-oldest", "refuse", "refuse"],
  ["smtpTls", "required", "offered", "offered"],
  ["mailFrom", undefined, "gate@example.org", "gate@example.org"],
  ["billingGateway", "ledger", "ledger", "ledger"],
  ["billingTimeout", 10, "5", 5],
  ["billingDevicePrice", 0, "199", 199],
  ["billingCurrency", "usd", "brl", "brl"],
];
const variableOf = (name: string) => `GATEHOUSE_${name.replaceAll(/[A-Z]/g, "_$&").toUpperCase()}`;

/**
 * Returns a column of SETTINGS as an object. Omits the SAML settings, because the parsed configuration has them as one
 * object, `saml`.
 */
const valuesOf = (column: 1 | 3) =>
  Object.fromEntries(SETTINGS.flatMap((row) => (row[0].startsWith("saml") ? [] : [[row[0], row[column]]])));

describe("without any setting", () => {
  test("an enterprise instance listens only on the local machine", () => {
    const config = readConfig({}, {});
    expect(config.tls).toBeUndefined();
    expect(config.internal).toBeUndefined();
    expect(config.database).toEqual({ file: resolve("gatehouse-data/gatehouse.db") });
    expect(config.settings).toEqual({
      ...valuesOf(1),
      internalHost: "127.0.0.1",
      databaseConnections: 10,
      migrateAnyway: false,
      saml: undefined,
    });
  });
});

const SAML = {
  GATEHOUSE_PUBLIC_URL: "https://gate.example.org",
  GATEHOUSE_SAML_IDP_ENTITY_ID: "https://idp.example.org",
  GATEHOUSE_SAML_SSO_URL: "https://idp.example.org/sso",
};

function certificateFile(text: string): string {
  const file = join(testFolder(), "idp.pem");
  writeFileSync(file, text);
  return file;
}

test("reads every setting from the environment", () => {
  const idp = newCertificate();
  const file = certificateFile(idp.cert);
  const config = readConfig(
    {
      ...Object.fromEntries(SETTINGS.map(([name, , text]) => [variableOf(name), text])),
      GATEHOUSE_SAML_CERTIFICATE_FILE: file,
      GATEHOUSE_DATABASE_URL: "file:/disk/policy.db",
      GATEHOUSE_SECRET: "0123456789abcdef0123456789abcdef",
      GATEHOUSE_SMTP_URL: "smtp://gate%40example.org:p%2Fw@mail.example.org",
    },
    {},
  );
  expect(config).toEqual({
    database: { file: "/disk/policy.db" },
    tls: { certFile: "/tls/cert.pem", keyFile: "/tls/key.pem" },
    unknownVariables: [],
    external: {
      secret: "GATEHOUSE_SECRET or GATEHOUSE_SECRET_FILE",
      settings: [
        "GATEHOUSE_TLS_CERT_FILE",
        "GATEHOUSE_TLS_KEY_FILE",
        "GATEHOUSE_SMTP_URL",
        "GATEHOUSE_WORKLOAD_ISSUER_PROXY",
        "GATEHOUSE_SAML_CERTIFICATE_FILE",
        "GATEHOUSE_GEOIP_FILE",
        "GATEHOUSE_METRICS_TOKEN_FILE",
      ],
    },
    internal: undefined,
    secret: "0123456789abcdef0123456789abcdef",
    mail: {
      server: {
        host: "mail.example.org",
        port: 587,
        secure: false,
        login: { user: "gate@example.org", password: "p/w" },
        tls: "offered",
      },
      from: "gate@example.org",
    },
    settings: {
      ...valuesOf(3),
      internalHost: "127.0.0.1",
      databaseConnections: 10,
      migrateAnyway: false,
      saml: {
        idpEntityId: "https://idp.example.org",
        ssoUrl: "https://idp.example.org/sso",
        certificates: [idp.cert],
        emailAttribute: "mail",
        nameAttribute: "displayName",
        linkUsers: true,
        serviceUrl: "https://gate.example.org",
      },
    },
  });
});

test("a flag has precedence over its variable, and an empty variable is ignored", () => {
  const config = readConfig({ GATEHOUSE_PORT: "1", GATEHOUSE_EDITION: "" }, { port: "2" });
  expect(config.settings.port).toBe(2);
  expect(config.settings.edition).toBe("enterprise");
});

test.each([
  ["GATEHOUSE_PORT", "65536", "from 0 to 65535"],
  ["GATEHOUSE_PORT", "80a", "from 0 to 65535"],
  ["GATEHOUSE_PORT", "1e3", "from 0 to 65535"],
  ["GATEHOUSE_HOST", "localhost:80", "without a port"],
  ["GATEHOUSE_EDITION", "Enterprise", "community, enterprise or cloud"],
  ["GATEHOUSE_LOG_LEVEL", "verbose", "fatal, error, warn, info, debug, trace or silent"],
  ["GATEHOUSE_MAXIMUM_LOCKOUT", "1h", "a whole number of minutes"],
  ["GATEHOUSE_MAXIMUM_RECORDING", "0", "from 1 to 1024"],
  ["GATEHOUSE_SESSION_RETENTION", "-1", "from 0 to 36500"],
  ["GATEHOUSE_SSH_ENDPOINT", "example.com", "host:port"],
  ["GATEHOUSE_API_ENDPOINT", "https://example.com:443", "host:port"],
  ["GATEHOUSE_API_ENDPOINT", "example.com:70000", "host:port"],
  ["GATEHOUSE_TRUSTED_PROXIES", "10.0.0.1,proxy", "IP addresses and ranges such as 10.0.0.0/8"],
  ["GATEHOUSE_TRUSTED_PROXIES", "10.0.0.0/33", "separated by commas"],
  ["GATEHOUSE_PUBLIC_URL", "gate.example.org", "http:// or https://"],
  ["GATEHOUSE_PUBLIC_URL", "ftp://gate.example.org", "http:// or https://"],
  ["GATEHOUSE_PUBLIC_URL", "https://gate.example.org/path", "http:// or https://"],
  ["GATEHOUSE_PUBLIC_URL", "https://user@gate.example.org", "http:// or https://"],
  ["GATEHOUSE_PUBLIC_URL", "https://gate:99999", "http:// or https://"],
  ["GATEHOUSE_CORS_ORIGINS", "*", "origins such as https://console.example.org"],
  ["GATEHOUSE_CORS_ORIGINS", "https://a.example,null", "origins such as https://console.example.org"],
  ["GATEHOUSE_LOGINS_PER_ADDRESS", "-1", "0 or more"],
  ["GATEHOUSE_METRICS_ADDRESS", "9464", "host:port"],
  ["GATEHOUSE_METRICS_ADDRESS", "localhost:65536", "host:port"],
  ["GATEHOUSE_SAML_SSO_URL", "idp.example.org", "https:// or http://"],
  ["GATEHOUSE_SAML_SSO_URL", "javascript:alert(1)", "https:// or http://"],
  ["GATEHOUSE_SAML_LINK_USERS", "yes", "true or false"],
  ["GATEHOUSE_SHUTDOWN_TIMEOUT", "0", "from 1 to 3600"],
  ["GATEHOUSE_MAIL_FROM", "gate", "an e-mail address"],
  ["GATEHOUSE_MAIL_FROM", "gate@example.org\r\nBcc: eve@example.org", "an e-mail address"],
  ["GATEHOUSE_SMTP_TLS", "off", "required or offered"],
])("rejects %s=%s, and reports the valid values", (variable, value, allowed) => {
  const flag = `--${variable.slice("GATEHOUSE_".length).toLowerCase().replaceAll("_", "-")}`;
  const read = () => readConfig({ [variable]: value }, {});
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(`${variable} (flag ${flag}) is ${JSON.stringify(value)}. Set it to`);
  expect(read).toThrow(allowed);
});

test("a cloud instance requires its public address, since mails have links to it", () => {
  expect(() => readConfig({ GATEHOUSE_EDITION: "cloud" }, {})).toThrow(
    "GATEHOUSE_PUBLIC_URL (flag --public-url) is not set. The cloud edition sends mails with links to this address",
  );
});

describe("the console", () => {
  const consoleAt = (url: string, others: Readonly<Record<string, string>> = {}) =>
    readConfig({ GATEHOUSE_CONSOLE_URL: url, ...others }, {}).settings.consoleUrl;
  const own = { GATEHOUSE_PUBLIC_URL: "https://gate.example.org" };

  test("can have another origin than the service", () => {
    expect(consoleAt("https://console.example.org/", own)).toBe("https://console.example.org");
    expect(consoleAt("https://gate.example.org:8443", own)).toBe("https://gate.example.org:8443");
  });

  test("cannot have the origin of the service", () => {
    expect(() => consoleAt("HTTPS://gate.example.org:443/", own)).toThrow(
      "GATEHOUSE_CONSOLE_URL (flag --console-url) must differ from GATEHOUSE_PUBLIC_URL (flag --public-url), " +
        "because /login would redirect to itself",
    );
  });

  test("requires the pages", () => {
    expect(() => consoleAt("https://console.example.org", { GATEHOUSE_PAGES: "off" })).toThrow(
      "GATEHOUSE_CONSOLE_URL (flag --console-url) has no effect while GATEHOUSE_PAGES (flag --pages) is off. " +
        "Set GATEHOUSE_PAGES to on, or remove GATEHOUSE_CONSOLE_URL",
    );
  });
});

describe("the mail server", () => {
  const from = { GATEHOUSE_MAIL_FROM: "gate@example.org" };
  const serverOf = (url: string) => readConfig({ ...from, GATEHOUSE_SMTP_URL: url }, {}).mail.server;

  test.each([
    ["smtps://mail.example.org", { host: "mail.example.org", port: 465, secure: true, tls: "required" }],
    ["smtp://mail.example.org:25/", { host: "mail.example.org", port: 25, secure: false, tls: "required" }],
    ["smtp://localhost", { tls: "unchecked" }],
    ["smtp://[::1]:2525", { host: "::1", port: 2525, tls: "unchecked" }],
    ["smtp://127.0.0.1", { tls: "unchecked" }],
    ["smtp://127.0.0.1.example.org", { tls: "required" }],
  ])("%s", (url, expected) => {
    expect(serverOf(url)).toMatchObject(expected);
  });

  test.each([
    "http://mail.example.org",
    "smtp://",
    "smtp://user-pw@mail.example.org",
    "smtp://:pw-1@mail.example.org",
    "smtp://user:pw-1%@mail.example.org",
    "smtp://user:pw-1@mail.example.org?tls.rejectUnauthorized=false",
    "smtp://user:pw-1@mail.example.org/path",
  ])("rejects %s without repeating it", (url) => {
    expect(() => serverOf(url)).toThrow("GATEHOUSE_SMTP_URL has an invalid value. Set it to smtp://");
    expect(() => serverOf(url)).not.toThrow("pw");
  });

  test("its address can come from a file, and requires the sender's address", () => {
    const file = join(testFolder(), "smtp-url");
    writeFileSync(file, "smtps://gate:pw-1@mail.example.org\n");
    const login = { user: "gate", password: "pw-1" };
    expect(readConfig({ ...from, GATEHOUSE_SMTP_URL_FILE: file }, {}).mail.server).toMatchObject({ login });
    expect(() => readConfig({ GATEHOUSE_SMTP_URL_FILE: file }, {})).toThrow(
      "GATEHOUSE_SMTP_URL is set without GATEHOUSE_MAIL_FROM (flag --mail-from)",
    );
  });
});

test("SAML requires all of its settings, an edition that has it, and strong certificates", () => {
  const good = newCertificate().cert;
  const all = { ...SAML, GATEHOUSE_SAML_CERTIFICATE_FILE: certificateFile(good) };
  expect(readConfig(all, {}).settings.saml?.certificates).toEqual([good]);
  for (const variable of Object.keys(all)) {
    expect(() => readConfig({ ...all, [variable]: "" }, {})).toThrow(/^SAML needs all of .*PUBLIC_URL/);
  }
  expect(() => readConfig({ ...all, GATEHOUSE_EDITION: "community" }, {})).toThrow(
    "the community edition does not support SAML",
  );
  const withFile = (file: string) => readConfig({ ...SAML, GATEHOUSE_SAML_CERTIFICATE_FILE: file }, {});
  const both = certificateFile(`Two of them\n${good}\n${newCertificate().cert}`);
  expect(withFile(both).settings.saml?.certificates).toHaveLength(2);
  const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  expect(() => withFile("/no/such/file")).toThrow(
    "Cannot read /no/such/file (GATEHOUSE_SAML_CERTIFICATE_FILE): it does not exist",
  );
  for (const file of [newCertificate(1024).cert, "", broken].map(certificateFile)) {
    expect(() => withFile(file)).toThrow(/^GATEHOUSE_SAML_CERTIFICATE_FILE is .*2048 bits or more$/);
  }
});

test("a certificate requires its key, and a key requires its certificate", () => {
  for (const variable of ["GATEHOUSE_TLS_CERT_FILE", "GATEHOUSE_TLS_KEY_FILE"]) {
    expect(() => readConfig({ [variable]: "/tls/file.pem" }, {})).toThrow(
      "GATEHOUSE_TLS_CERT_FILE (flag --tls-cert-file) and GATEHOUSE_TLS_KEY_FILE (flag --tls-key-file) must be set together",
    );
  }
});

test("reports each wrong setting on one line", () => {
  const failure = () => readConfig({ GATEHOUSE_PORT: "x" }, { edition: "gold" });
  expect(failure).toThrow(
    /^GATEHOUSE_PORT [^\n]+\n--edition \(variable GATEHOUSE_EDITION\) is "gold"[^\n]+$/,
  );
});

describe("the listener for internal operations", () => {
  const token = "0123456789abcdef0123456789abcdef";

  test("is off by default, even if a token is set", () => {
    expect(readConfig({}, {}).internal).toBeUndefined();
    expect(readConfig({ GATEHOUSE_INTERNAL_TOKEN: token }, {}).internal).toBeUndefined();
  });

  test("reads its token from a variable or a file", () => {
    const environment = { GATEHOUSE_INTERNAL_PORT: "0", GATEHOUSE_INTERNAL_TOKEN: token };
    expect(readConfig(environment, {}).internal).toEqual({ host: "127.0.0.1", port: 0, token });
    const file = join(testFolder(), "token");
    writeFileSync(file, `${token}\n`);
    const flags = { internalPort: "9000", internalHost: "10.0.0.1" };
    expect(readConfig({ GATEHOUSE_INTERNAL_TOKEN_FILE: file }, flags).internal).toEqual({
      host: "10.0.0.1",
      port: 9000,
      token,
    });
  });

  test("is required if other instances connect to it", () => {
    const peerUrl = "http://10.0.0.1:9000";
    const environment = { GATEHOUSE_INTERNAL_TOKEN: token, GATEHOUSE_PEER_URL: peerUrl };
    expect(readConfig({ ...environment, GATEHOUSE_INTERNAL_PORT: "9000" }, {}).internal).toMatchObject({
      peerUrl,
    });
    expect(() => readConfig(environment, {})).toThrow(
      "GATEHOUSE_PEER_URL (flag --peer-url) is set without GATEHOUSE_INTERNAL_PORT (flag --internal-port)",
    );
  });

  test("is rejected without a token, and with a malformed token, which the error does not repeat", () => {
    const read = (environment: object) => () =>
      readConfig({ GATEHOUSE_INTERNAL_PORT: "0", ...environment }, {});
    expect(read({})).toThrow(ConfigError);
    expect(read({})).toThrow(
      "GATEHOUSE_INTERNAL_PORT (flag --internal-port) is set without GATEHOUSE_INTERNAL_TOKEN or " +
        "GATEHOUSE_INTERNAL_TOKEN_FILE, which must be a text of 32 to 1024 visible ASCII characters",
    );
    for (const wrong of [token.slice(1), `${token} `, `${token}\u00e9`]) {
      const reading = read({ GATEHOUSE_INTERNAL_TOKEN: wrong });
      expect(reading).toThrow("GATEHOUSE_INTERNAL_TOKEN has an invalid value. Set it to a text");
      expect(reading).not.toThrow(wrong);
    }
  });
});

describe("a PostgreSQL database", () => {
  const url = "postgresql://gatehouse:pa55word@db.example.org:5433/policy";

  test("is set by its URL, from the environment or a file", () => {
    const expected = { url, connections: 4 };
    const environment = { GATEHOUSE_DATABASE_URL: url, GATEHOUSE_DATABASE_CONNECTIONS: "4" };
    expect(readConfig(environment, {}).database).toEqual(expected);
    const file = join(testFolder(), "url");
    writeFileSync(file, `${url}\n`);
    const { GATEHOUSE_DATABASE_URL: _, ...others } = environment;
    expect(readConfig({ ...others, GATEHOUSE_DATABASE_URL_FILE: file }, {}).database).toEqual(expected);
  });

  test("is rejected with a password on the command line, and accepted without a password", () => {
    const read = () => readConfig({}, { databaseUrl: url });
    expect(read).toThrow("--database-url: every user of the machine can read a password on the command line");
    expect(read).not.toThrow("pa55word");
    const without = "postgresql://gatehouse@db.example.org/policy";
    expect(readConfig({}, { databaseUrl: without }).database).toMatchObject({ url: without });
  });

  test.each(["postgresql://", "postgresql://host", "mysql://host/name", "/path"])(
    "%s is rejected",
    (wrong) => {
      expect(() => readConfig({ GATEHOUSE_DATABASE_URL: wrong }, {})).toThrow(
        "GATEHOUSE_DATABASE_URL (flag --database-url) has an invalid value. Set it to file:<path>",
      );
    },
  );

  test("rejects a variable together with a file, a missing file, and an empty file", () => {
    const missing = join(testFolder(), "missing");
    expect(() =>
      readConfig({ GATEHOUSE_DATABASE_URL: url, GATEHOUSE_DATABASE_URL_FILE: missing }, {}),
    ).toThrow("GATEHOUSE_DATABASE_URL and GATEHOUSE_DATABASE_URL_FILE are both set");
    expect(() => readConfig({ GATEHOUSE_DATABASE_URL_FILE: missing }, {})).toThrow(`Cannot read ${missing}`);
    writeFileSync(missing, "\n");
    expect(() => readConfig({ GATEHOUSE_DATABASE_URL_FILE: missing }, {})).toThrow(`${missing} is empty`);
  });
});
