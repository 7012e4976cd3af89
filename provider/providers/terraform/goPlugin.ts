import { webcrypto } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DAY } from "@gatehouse-access/sdk/times";
import grpc from "@grpc/grpc-js";
import { pluginServices } from "./protocol.ts";

/**
 * The magic cookie that Terraform sets in the environment of its plugins. The cookie distinguishes a start by Terraform
 * from a start by a user.
 */
const COOKIE = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

/** The versions of the provider protocol and of the handshake. */
const [PROTOCOL, CORE] = [6, 1];

/** The maximum message size, in bytes. Terraform has the same maximum. */
const LARGEST = 256 * 1024 * 1024;

/** The interval between checks of the parent process, in milliseconds. */
const WATCH = 1_000;

/** The methods of a provider, by name. */
type ProviderMethods = Readonly<Record<string, (request: never) => Promise<object> | object>>;

/** The way in which a provider was started. */
interface PluginStart {
  readonly env: NodeJS.ProcessEnv;
  /**
   * True to serve any client that attaches. The provider then uses no certificate, and runs until the process ends.
   */
  readonly attachable: boolean;
}

/** Returns true if Terraform started this process as a plugin. */
export const isStartedByTerraform = (env: NodeJS.ProcessEnv): boolean =>
  env.TF_PLUGIN_MAGIC_COOKIE === COOKIE;

/**
 * Serves a provider on a Unix socket until Terraform or the attached client stops the process.
 * @returns the text to print: the handshake line for Terraform, or the value of `TF_REATTACH_PROVIDERS` for attaching
 *   clients
 * @throws Error if Terraform does not support this protocol version
 */
export async function servePlugin(
  methods: ProviderMethods,
  source: string,
  { env, attachable }: PluginStart,
): Promise<string> {
  const versions = env.PLUGIN_PROTOCOL_VERSIONS?.split(",") ?? [];
  if (!attachable && !versions.includes(String(PROTOCOL))) {
    throw new Error(
      `This provider requires version ${PROTOCOL} of the plugin protocol, but this Terraform supports ${versions.join(", ") || "none"}. Use Terraform 1.0 or newer.`,
    );
  }
  const folder = mkdtempSync(join(env.PLUGIN_UNIX_SOCKET_DIR || tmpdir(), "gatehouse-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const socket = join(folder, "provider");
  const clientCertificate = attachable ? undefined : env.PLUGIN_CLIENT_CERT;
  const own = clientCertificate === undefined ? undefined : await selfSigned();
  const credentials =
    own && clientCertificate !== undefined
      ? grpc.ServerCredentials.createSsl(
          Buffer.from(clientCertificate),
          [{ private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.certificate) }],
          true,
        )
      : grpc.ServerCredentials.createInsecure();
  await listen(methods, socket, credentials);
  // Ctrl+C sends an interrupt signal to the whole process group. The plugin ignores this signal, because Terraform
  // stops its plugins with a request.
  process.on("SIGINT", () => {});
  if (attachable) {
    const address = { Network: "unix", String: socket };
    const how = { Protocol: "grpc", ProtocolVersion: PROTOCOL, Pid: process.pid, Test: true, Addr: address };
    return JSON.stringify({ [source]: how });
  }
  exitWithParent();
  const certificate = own?.der.toString("base64").replace(/=+$/, "") ?? "";
  return [CORE, PROTOCOL, "unix", socket, "grpc", certificate].join("|");
}

/**
 * Exits when the parent process ends. Terraform normally stops its plugins, but a killed Terraform process cannot do
 * so. Without this check, the plugin would then run forever.
 */
function exitWithParent(): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.exit(1);
  }, WATCH).unref();
}

async function listen(
  methods: ProviderMethods,
  socket: string,
  credentials: grpc.ServerCredentials,
): Promise<void> {
  const server = new grpc.Server({
    "grpc.max_receive_message_length": LARGEST,
    "grpc.max_send_message_length": LARGEST,
  });
  const services = pluginServices();
  const add = (name: string, implementation: grpc.UntypedServiceImplementation) =>
    server.addService(services[name] as grpc.ServiceDefinition, implementation);
  add("tfplugin6.Provider", Object.fromEntries(Object.entries(methods).map(answering)));
  add("plugin.GRPCController", {
    Shutdown: (_call: unknown, done: grpc.sendUnaryData<object>) => {
      done(null, {});
      setImmediate(() => process.exit(0));
    },
  });
  // These two streams stay open but carry no messages. Logs go to standard error instead, and the plugin opens no
  // further connections.
  add("plugin.GRPCStdio", { StreamStdio: () => {} });
  add("plugin.GRPCBroker", { StartStream: () => {} });
  const SERVING = 1;
  add("grpc.health.v1.Health", {
    Check: (_call: unknown, done: grpc.sendUnaryData<object>) => done(null, { status: SERVING }),
  });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, credentials, (error) => (error ? reject(error) : resolve()));
  });
}

function answering([name, method]: [string, ProviderMethods[string]]): [string, grpc.UntypedHandleCall] {
  const handle = (call: { readonly request: object }, done: grpc.sendUnaryData<object>) => {
    Promise.resolve(call.request as never)
      .then(method)
      .then(
        (answer) => done(null, answer),
        (error: unknown) => done({ code: grpc.status.INTERNAL, details: String(error) }),
      );
  };
  return [name, handle as grpc.UntypedHandleCall];
}

/**
 * Creates a certificate for one run. With the certificate, Terraform verifies that it is connected to the process that
 * it started.
 */
async function selfSigned(): Promise<{ key: string; certificate: string; der: Buffer }> {
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { KeyUsageFlags: usage, ExtendedKeyUsage: extended } = x509;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost",
    notBefore: new Date(Date.now() - DAY),
    notAfter: new Date(Date.now() + 365 * DAY),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(usage.digitalSignature | usage.keyCertSign, true),
      new x509.ExtendedKeyUsageExtension([extended.serverAuth, extended.clientAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "localhost" }]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const lines = pkcs8.toString("base64").replaceAll(/.{64}/g, "$&\n");
  return {
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
    certificate: certificate.toString("pem"),
    der: Buffer.from(certificate.rawData),
  };
}
