import {
  EngineError,
  openStack,
  type Stack,
  type StackOptions,
  StackSelectionError,
} from "../engine/index.ts";
import type { OwnResource } from "../estate/coverage.ts";
import type { Connection, Home } from "../service/connection.ts";
import { type Io, withEnv } from "./io.ts";
import { tellingOf } from "./withConnection.ts";

/** The key of the stack's configuration that holds its namespace. */
const TENANT_KEY = "gatehouse:tenant";

/** The service of a run, and the namespace of resources that name none. */
export interface Service extends Home {
  readonly connection: Connection;
  /** Writes the namespace into the stack's configuration, for all later runs; gives a sentence that says so. */
  readonly pin: () => Promise<string | undefined>;
  /** The service and the namespace, for people. */
  readonly text: string;
}

/** A stack, and where its objects are. */
export interface OnService {
  readonly stack: Stack;
  /** Undefined where no address is set. */
  readonly service: Service | undefined;
  /** The settings in it name the namespace: what follows is to be done with it. */
  readonly io: Io;
}

/** The service. @throws EngineError (`service`) where no address is set */
export function requireService(service: Service | undefined): Service {
  if (service) return service;
  throw new EngineError(
    "service",
    "GATEHOUSE_URL: set it, or gatehouse:url in the stack's configuration, to the address of the service, for example https://access.example.org",
  );
}

/**
 * Opens a stack, and settles once which namespace resources are in that name none, so that a plan, its review and its
 * run have the same one. The caller closes the connection.
 * @param createNamespace name of a namespace to make, where none is settled and the user is in none of that name
 * @throws what opening the stack throws; RequestError where the service or the credential fails; ConfigurationError
 * where a setting is wrong
 */
export async function openOnService(
  io: Io,
  options: Omit<StackOptions, "env">,
  createNamespace?: string,
): Promise<OnService> {
  const { env } = io;
  const stack = await openStack({ ...options, env });
  const { newConnection, settings } = await import("../service/newConnection.ts");
  const configuration = isComplete(env) ? new Map<string, string>() : await configurationOf(stack);
  const lookup = (key: string) => configuration.get(key);
  if (!isSet(settings(lookup, env), "GATEHOUSE_URL")) return { stack, service: undefined, io };
  const tell = (line: string) => io.stderr.write(`${line}\n`);
  const connection = newConnection(lookup, { tell, stop: options.signal }, env);
  try {
    const { tenant, unsettled, isKept, words } = await tellingOf(io.stderr, connection, () =>
      settled(env, stack, connection, createNamespace),
    );
    const service = { connection, tenant, unsettled, pin: async () => undefined };
    if (tenant === undefined) {
      return { stack, service: { ...service, text: `${connection.client.url}; no namespace is set` }, io };
    }
    const text = await textOf(connection, tenant, words);
    if (isKept) return { stack, service: { ...service, text }, io };
    // With its service: the plugin gives the namespace to no provider instance of another one.
    const place = { ...(!isSet(env, "GATEHOUSE_URL") && { GATEHOUSE_URL: connection.client.url }) };
    const settledIo = withEnv(io, { ...env, ...place, GATEHOUSE_TENANT: tenant });
    // Opened again: a stack keeps the environment with which it was opened.
    const reopened = await openStack({ ...options, env: settledIo.env });
    const pin = async () => {
      await reopened.setConfig(TENANT_KEY, tenant);
      return `${TENANT_KEY} is ${tenant} in the stack's configuration from now on.`;
    };
    return { stack: reopened, service: { ...service, pin, text }, io: settledIo };
  } catch (error) {
    await connection.client.close();
    throw error;
  }
}

const isSet = (env: NodeJS.ProcessEnv, name: string) => Boolean(env[name] ?? env[`${name}_FILE`]);

/** True when the environment has all settings, so that the stack's configuration need not be read. */
const isComplete = (env: NodeJS.ProcessEnv) =>
  isSet(env, "GATEHOUSE_TENANT") &&
  ["GATEHOUSE_API_KEY", "GATEHOUSE_TOKEN", "GATEHOUSE_PASSWORD"].some((name) => isSet(env, name)) &&
  // With TLS, the configuration may name authorities to trust.
  (env.GATEHOUSE_URL?.startsWith("http:") || (isSet(env, "GATEHOUSE_URL") && Boolean(env.GATEHOUSE_CA_FILE)));

/** The configuration of a stack; empty where the stack is still to be made. */
async function configurationOf(stack: Stack): Promise<ReadonlyMap<string, string>> {
  try {
    return await stack.config();
  } catch (error) {
    if (error instanceof StackSelectionError) return new Map();
    throw error;
  }
}

interface Settled extends Home {
  /** True when a setting says so, which holds in later runs as well. */
  readonly isKept: boolean;
  /** How it was settled, for people. */
  readonly words: string;
}

async function settled(
  env: NodeJS.ProcessEnv,
  stack: Stack,
  connection: Connection,
  createNamespace: string | undefined,
): Promise<Settled> {
  const { ConfigurationError } = await import("@gatehouse-access/sdk");
  const unneeded = createNamespace === undefined ? "" : "; --create-namespace was not needed";
  const set = connection.defaultTenant;
  if (set !== undefined) {
    const by = isSet(env, "GATEHOUSE_TENANT") ? "GATEHOUSE_TENANT" : "the stack's configuration";
    return { tenant: set, unsettled: undefined, isKept: true, words: `by ${by}${unneeded}` };
  }
  const { ownResources } = await import("../estate/coverage.ts");
  const [kept, ...others] = homesIn(ownResources(await stack.resources(), connection.client.url));
  if (others.length > 0) {
    const unsettled = new ConfigurationError(
      `tenant: resources of the stack that name no namespace are in ${others.length + 1} of them: ${[kept, ...others].sort().join(", ")}; name it in those of all but one, and set ${TENANT_KEY} to that one`,
    );
    return { tenant: undefined, unsettled, isKept: false, words: "" };
  }
  if (kept !== undefined) {
    const words = `where the stack's resources are${unneeded}`;
    return { tenant: kept, unsettled: undefined, isKept: false, words };
  }
  const home =
    createNamespace === undefined
      ? await connection.homeIfAny()
      : { tenant: await namespaceOf(connection, createNamespace), unsettled: undefined };
  return { ...home, isKept: false, words: "the only one of the credential" };
}

/**
 * The namespaces of a service that hold the objects of resources which name none. After a run with a setting, every resource in the
 * state names a namespace: then the one counts that holds all objects outside the stack's own namespaces.
 */
function homesIn(resources: readonly OwnResource[]): string[] {
  const own = resources.flatMap(({ definition, inputs = {}, outputs = {} }) =>
    typeof outputs.tenant === "string"
      ? [
          {
            isNamespace: definition.name === "Namespace",
            isNamed: Boolean(inputs.tenant),
            tenant: outputs.tenant,
          },
        ]
      : [],
  );
  const inside = own.filter(({ isNamespace }) => !isNamespace);
  const unnamed = inside.filter(({ isNamed }) => !isNamed);
  if (unnamed.length > 0) return tenantsOf(unnamed);
  const made = tenantsOf(own.filter(({ isNamespace }) => isNamespace));
  const others = tenantsOf(inside).filter((tenant) => !made.includes(tenant));
  return others.length === 1 ? others : [];
}

const tenantsOf = (resources: readonly { readonly tenant: string }[]) => [
  ...new Set(resources.map(({ tenant }) => tenant)),
];

async function namespaceOf({ client, namespaces }: Connection, name: string): Promise<string> {
  const all = await namespaces.all();
  const known = all.find((namespace) => namespace.name === name.toLowerCase());
  return known?.tenantId ?? (await client.createNamespace({ body: { name } })).tenantId;
}

async function textOf(connection: Connection, tenant: string, words: string): Promise<string> {
  const { NotFoundError, PermissionError } = await import("@gatehouse-access/sdk");
  const { printable } = await import("../words.ts");
  const { url } = connection.client;
  try {
    const found = await connection.namespaces.find(tenant);
    return `${found ? `${printable(found.name)} (${tenant})` : `${tenant}, which is not there,`} on ${url}, ${words}`;
  } catch (error) {
    // The run itself will say what that means for it.
    if (!(error instanceof NotFoundError || error instanceof PermissionError)) throw error;
    return `${tenant} on ${url}, ${words}`;
  }
}
